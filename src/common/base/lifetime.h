// Lifetime: lets callbacks find out that the object they use has been destroyed.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace baton::internal {

// A member of the object that the callbacks use. All calls and all callbacks run on one strand, so
// an object that is alive when a callback starts is destroyed during the callback only by code that
// the callback itself calls. A callback that calls such code and then uses the object again needs
// watch() and a second check.
//
// The destructor of the object calls end() in its first statement. Otherwise a callback that runs
// during the destructor would still use the object.
class Lifetime {
 public:
  // Whether the object is alive. Copies may outlive the object.
  class Watch {
   public:
    explicit operator bool() const noexcept { return *alive_; }

   private:
    friend class Lifetime;
    explicit Watch(std::shared_ptr<const bool> alive) noexcept : alive_(std::move(alive)) {}
    std::shared_ptr<const bool> alive_;
  };

  Lifetime() : alive_(std::make_shared<bool>(true)) {}
  ~Lifetime() { end(); }
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // From here on guarded callbacks do nothing. May be called before the object is destroyed.
  void end() noexcept { *alive_ = false; }

  Watch watch() const noexcept { return Watch(alive_); }

  // A callback that calls f with its arguments while the object is alive, and does nothing
  // afterwards. It can be copied if f can be copied.
  template <class F>
  auto guard(F f) const {
    return Guard<F>{watch(), std::move(f)};
  }

  // Like guard(), for an f that returns a value: the callback returns `dead` after the end.
  template <class R, class F>
  auto guard_or(R dead, F f) const {
    return GuardOr<R, F>{watch(), std::move(dead), std::move(f)};
  }

 private:
  template <class F>
  struct Guard {
    Watch alive;
    F f;
    template <class... Args>
    requires std::invocable<F&, Args...>
    void operator()(Args&&... args) {
      if (alive) f(std::forward<Args>(args)...);
    }
  };
  template <class R, class F>
  struct GuardOr {
    Watch alive;
    R dead;
    F f;
    template <class... Args>
    requires std::is_invocable_r_v<R, F&, Args...> R operator()(Args&&... args) {
      return alive ? R(f(std::forward<Args>(args)...)) : dead;
    }
  };

  std::shared_ptr<bool> alive_;
};

}  // namespace baton::internal

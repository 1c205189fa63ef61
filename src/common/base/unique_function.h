// UniqueFunction: std::function for move-only callables (std::move_only_function is C++23).
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace baton::internal {

template <class Signature>
class UniqueFunction;

template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() noexcept = default;
  UniqueFunction(std::nullptr_t) noexcept {}  // NOLINT: implicit, like std::function
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
      UniqueFunction(F&& f)  // NOLINT: implicit, like std::function
      : body_(std::make_unique<Body<std::decay_t<F>>>(std::forward<F>(f))) {}

  explicit operator bool() const noexcept { return body_ != nullptr; }
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the signature decides
  R operator()(Args... args) { return body_->call(std::forward<Args>(args)...); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Body final : Base {
    explicit Body(const F& f) : f_(f) {}
    explicit Body(F&& f) : f_(std::move(f)) {}
    R call(Args... args) override { return f_(std::forward<Args>(args)...); }
    F f_;
  };
  std::unique_ptr<Base> body_;
};

using Task = UniqueFunction<void()>;

}  // namespace baton::internal

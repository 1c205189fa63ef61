// Handler: a program's completion handler behind one virtual call. Internal: no program includes
// this.
#pragma once

#include <baton/lock.h>
#include <baton/result.h>

#include <utility>

namespace baton::internal {

// Called once with the outcome of an acquire, then destroyed.
class HandlerBase {
 public:
  virtual ~HandlerBase() = default;
  virtual void call(Result<Lock> result) = 0;
};

// Not std::function: F may be move-only.
template <class F>
class Handler final : public HandlerBase {
 public:
  explicit Handler(F&& f) : f_(std::move(f)) {}
  explicit Handler(const F& f) : f_(f) {}
  void call(Result<Lock> result) override { std::move(f_)(std::move(result)); }

 private:
  F f_;
};

}  // namespace baton::internal

// Result<T>: a value or an Error, for code that does not use exceptions.
#pragma once

#include <baton/error.h>

#include <type_traits>
#include <utility>
#include <variant>

namespace baton {

// Holds a T or an Error, never neither. Owns what it holds: destroying a Result<Lock> releases the
// lock, destroying a Result<Client> closes the client. A moved-from Result still says which of the
// two it held. Not thread-safe: one thread at a time.
//
//   auto result = mutex.acquire_result({.timeout = std::chrono::seconds(30)});
//   if (!result) return result.error().errc();
//   baton::Lock lock = *std::move(result);
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : data_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  // Whether it holds a T. Never throws.
  bool has_value() const noexcept { return data_.index() == 0; }
  explicit operator bool() const& noexcept { return has_value(); }
  // Does not compile on a temporary: a temporary Result<Lock> releases its lock, and a temporary
  // Result<Client> closes its client, before the answer is used. Give it a name:
  //   if (auto result = mutex.acquire_result()) { /* the lock is held here */ }
  explicit operator bool() const&& = delete;

  // The value. Throws the stored Error if there is none.
  T& value() & {
    check();
    return *std::get_if<0>(&data_);
  }
  const T& value() const& {
    check();
    return *std::get_if<0>(&data_);
  }
  T&& value() && {
    check();
    return std::move(*std::get_if<0>(&data_));
  }

  // The value, without a check. Undefined behaviour if has_value() is false.
  T& operator*() & noexcept { return *std::get_if<0>(&data_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&data_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&data_)); }
  T* operator->() noexcept { return std::get_if<0>(&data_); }
  const T* operator->() const noexcept { return std::get_if<0>(&data_); }

  // The error, without a check. Undefined behaviour if has_value() is true.
  const Error& error() const noexcept { return *std::get_if<1>(&data_); }

 private:
  void check() const {
    if (!has_value()) throw error();
  }
  std::variant<T, Error> data_;
};

}  // namespace baton

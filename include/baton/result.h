// Result<T>: a value or an Error, for code that does not use exceptions.
#pragma once

#include <baton/error.h>

#include <type_traits>
#include <utility>
#include <variant>

namespace baton {

// Holds either a T or an Error, never neither (a moved-from Result keeps its kind). Not
// thread-safe by itself. Reading the wrong side: value() throws the stored Error; operator*,
// operator-> and error() have the other side as a precondition.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : data_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool has_value() const noexcept { return data_.index() == 0; }
  explicit operator bool() const& noexcept { return has_value(); }
  // A temporary Result<Lock> releases its lock before the answer is used, and a temporary
  // Result<Client> closes its client. Give it a name: `if (auto r = m.acquire_result()) {...}`.
  explicit operator bool() const&& = delete;

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

  T& operator*() & noexcept { return *std::get_if<0>(&data_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&data_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&data_)); }
  T* operator->() noexcept { return std::get_if<0>(&data_); }
  const T* operator->() const noexcept { return std::get_if<0>(&data_); }

  const Error& error() const noexcept { return *std::get_if<1>(&data_); }

 private:
  void check() const {
    if (!has_value()) throw error();
  }
  std::variant<T, Error> data_;
};

}  // namespace baton

#include <baton/result.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

namespace baton {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error(Errc::invalid_argument, "odd");
  return n / 2;
}

TEST(ResultType, HoldsAValue) {
  auto r = half(8);
  EXPECT_TRUE(r.has_value());
  EXPECT_TRUE(static_cast<bool>(r));
  EXPECT_EQ(r.value(), 4);
  EXPECT_EQ(*r, 4);
  *r = 5;
  EXPECT_EQ(std::as_const(r).value(), 5);
  EXPECT_EQ(*std::as_const(r), 5);
}

TEST(ResultType, HoldsAnError) {
  const auto r = half(7);
  EXPECT_FALSE(r);
  EXPECT_EQ(r.error().errc(), Errc::invalid_argument);
  EXPECT_STREQ(r.error().what(), "odd");
  try {
    (void)r.value();
    FAIL() << "value() of an error must throw it";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::invalid_argument);
    EXPECT_STREQ(error.what(), "odd");
  }
  auto moved = half(7);
  EXPECT_THROW((void)std::move(moved).value(), Error);
}

TEST(ResultType, WorksWithMoveOnlyValues) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(3);
  EXPECT_EQ(**r, 3);
  const std::unique_ptr<int> out = std::move(r).value();
  EXPECT_EQ(*out, 3);
  EXPECT_TRUE(r.has_value()) << "a moved-from Result keeps its kind";  // NOLINT
  Result<std::unique_ptr<int>> s = std::make_unique<int>(4);
  const std::unique_ptr<int> other = *std::move(s);
  EXPECT_EQ(*other, 4);
}

TEST(ResultType, ArrowReachesMembers) {
  Result<std::string> r = std::string("abc");
  EXPECT_EQ(r->size(), 3u);
  r->push_back('d');
  EXPECT_EQ(std::as_const(r)->size(), 4u);
}

TEST(ResultType, CanBeReassigned) {
  auto r = half(2);
  r = half(3);
  EXPECT_FALSE(r);
  r = 6;
  ASSERT_TRUE(r);
  EXPECT_EQ(*r, 6);
}

TEST(ResultType, IsExplicitlyBool) {
  static_assert(!std::is_convertible_v<Result<int>, bool>);
  static_assert(std::is_constructible_v<bool, Result<int>&>);
  static_assert(std::is_constructible_v<bool, const Result<int>&>);
  static_assert(!std::is_constructible_v<bool, Result<int>>, "a temporary");
  static_assert(!std::is_constructible_v<bool, const Result<int>>, "a constant temporary");
  static_assert(std::is_nothrow_move_constructible_v<Result<std::string>>);
  static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
  SUCCEED();
}

}  // namespace
}  // namespace baton

// Lifetime: a guarded callback does nothing after its object has been destroyed.
#include "common/base/lifetime.h"
#include "common/base/unique_function.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace baton::internal {
namespace {

// An object whose callbacks outlive it. It counts in a variable of the test, so a call after its
// end is counted and is not undefined behaviour.
struct Object {
  explicit Object(int& c) : calls(c) {}
  ~Object() { lifetime.end(); }
  int& calls;
  Lifetime lifetime;
};

TEST(LifetimeGuard, CallsWhileTheObjectLives) {
  int calls = 0;
  Object object(calls);
  UniqueFunction<void(int)> callback = object.lifetime.guard([&](int n) { object.calls += n; });
  callback(2);
  callback(3);
  EXPECT_EQ(calls, 5);
}

TEST(LifetimeGuard, DoesNothingAfterTheEnd) {
  int calls = 0;
  auto object = std::make_unique<Object>(calls);
  auto callback = object->lifetime.guard([&calls] { ++calls; });
  const auto copy = callback;
  object.reset();
  callback();
  auto second = copy;
  second();
  EXPECT_EQ(calls, 0);
}

TEST(LifetimeGuard, EndsBeforeTheObjectIsDestroyed) {
  int calls = 0;
  Object object(calls);
  auto before = object.lifetime.guard([&calls] { ++calls; });
  object.lifetime.end();
  object.lifetime.end();
  auto after = object.lifetime.guard([&calls] { ++calls; });
  before();
  after();
  EXPECT_EQ(calls, 0);
}

// A callback that is destroyed or called inside the destructor of its object.
TEST(LifetimeGuard, CallInsideTheDestructorDoesNothing) {
  struct Owner {
    explicit Owner(int& c) : calls(c) {}
    ~Owner() {
      lifetime.end();
      callback();
    }
    int& calls;
    Lifetime lifetime;
    UniqueFunction<void()> callback;
  };
  int calls = 0;
  {
    Owner owner(calls);
    owner.callback = owner.lifetime.guard([&owner] { ++owner.calls; });
    owner.callback();
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(calls, 1);
}

TEST(LifetimeGuard, WatchSeesAnEndDuringTheCallback) {
  int calls = 0;
  std::optional<Object> object(std::in_place, calls);
  bool alive_before = false;
  bool alive_after = true;
  auto callback = object->lifetime.guard([&, alive = object->lifetime.watch()] {
    alive_before = static_cast<bool>(alive);
    object.reset();
    alive_after = static_cast<bool>(alive);
  });
  callback();
  EXPECT_TRUE(alive_before);
  EXPECT_FALSE(alive_after);
}

TEST(LifetimeGuard, MovesItsArgumentsThrough) {
  int calls = 0;
  Object object(calls);
  std::unique_ptr<std::string> got;
  UniqueFunction<void(std::unique_ptr<std::string>)> callback =
      object.lifetime.guard([&got](std::unique_ptr<std::string> text) { got = std::move(text); });
  callback(std::make_unique<std::string>("moved"));
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(*got, "moved");
}

TEST(LifetimeGuard, ReturnsTheGivenValueAfterTheEnd) {
  int calls = 0;
  auto object = std::make_unique<Object>(calls);
  UniqueFunction<bool(int)> callback =
      object->lifetime.guard_or(false, [](int n) { return n > 0; });
  EXPECT_TRUE(callback(1));
  EXPECT_FALSE(callback(0));
  object.reset();
  EXPECT_FALSE(callback(1));
}

}  // namespace
}  // namespace baton::internal

// How error codes and messages of etcd map to Status.
#include "etcd/status.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::etcd {
namespace {

Status status(int code, const std::string& message = "") { return status_of({code, message}); }

TEST(EtcdStatusTest, WhatHasNoAnswerMayHaveHappened) {
  EXPECT_EQ(status(1, "CANCELLED"), Status::lost);
  EXPECT_EQ(status(2, "unknown"), Status::lost);
  EXPECT_EQ(status(4, "Deadline Exceeded"), Status::lost);
  EXPECT_EQ(status(10, "aborted"), Status::lost);
  EXPECT_EQ(status(13, "internal"), Status::lost);
  EXPECT_EQ(status(14, "Socket closed"), Status::lost);
  EXPECT_EQ(status(14, "etcdserver: request timed out"), Status::lost);
  EXPECT_EQ(status(14, "etcdserver: leader changed"), Status::lost);
  EXPECT_EQ(status(99), Status::lost) << "whatever gRPC invents";
}

TEST(EtcdStatusTest, WhatWasRefusedAtTheDoorHasNotHappened) {
  EXPECT_EQ(status(14, "etcdserver: no leader"), Status::not_sent);
  EXPECT_EQ(status(8, "etcdserver: too many requests"), Status::not_sent);
  EXPECT_EQ(status(8, "etcdserver: mvcc: database space exceeded"), Status::lost)
      << "said of transactions that were applied, too";
}

TEST(EtcdStatusTest, BothPassByThemselves) {
  EXPECT_TRUE(is_transient(Status::lost));
  EXPECT_TRUE(is_transient(Status::not_sent));
  for (const auto other :
       {Status::ok, Status::lease_gone, Status::bad_revision, Status::token_expired,
        Status::refused, Status::unimplemented, Status::failed}) {
    EXPECT_FALSE(is_transient(other));
  }
}

TEST(EtcdStatusTest, LeaseThatIsNotFoundIsGone) {
  EXPECT_EQ(status(5, "etcdserver: requested lease not found"), Status::lease_gone);
  EXPECT_EQ(status(5, "etcdserver: member not found"), Status::failed);
}

TEST(EtcdStatusTest, RevisionsThatCannotBeReadAreNoError) {
  EXPECT_EQ(status(11, "etcdserver: mvcc: required revision has been compacted"),
            Status::bad_revision);
  EXPECT_EQ(status(11, "etcdserver: mvcc: required revision is a future revision"),
            Status::bad_revision);
}

TEST(EtcdStatusTest, TokensRunOutAndAgeWithTheRoles) {
  EXPECT_EQ(status(16, "etcdserver: invalid auth token"), Status::token_expired);
  EXPECT_EQ(status(3, "etcdserver: revision of auth store is old"), Status::token_expired);
}

TEST(EtcdStatusTest, WhoMayNotIsRefused) {
  EXPECT_EQ(status(7, "etcdserver: permission denied"), Status::refused);
  EXPECT_EQ(status(3, "etcdserver: user name is empty"), Status::refused);
  EXPECT_EQ(status(3, "etcdserver: authentication failed, invalid user ID or password"),
            Status::refused);
}

TEST(EtcdStatusTest, TheRestIsFinal) {
  EXPECT_EQ(status(0), Status::ok);
  EXPECT_EQ(status(3, "etcdserver: key is not provided"), Status::failed);
  EXPECT_EQ(status(9, "etcdserver: authentication is not enabled"), Status::failed);
  EXPECT_EQ(status(12, "unknown service"), Status::unimplemented);
  EXPECT_EQ(status(15, "etcdserver: corrupt cluster"), Status::failed);
}

TEST(EtcdStatusTest, ErrorsSayWhatWasDoneAndWhatHappened) {
  const auto error = call_error(Status::lost, {14, "Socket closed"}, "join /app/job/");
  EXPECT_EQ(error.errc(), Errc::connection_failed);
  EXPECT_STREQ(error.what(), "join /app/job/: Socket closed (gRPC status 14)");
  EXPECT_NE(std::string(call_error(Status::lost, {4, ""}, "x").what()).find("no answer in time"),
            std::string::npos);
}

TEST(EtcdStatusTest, EachStatusHasItsError) {
  const auto code = [](Status status) { return call_error(status, {2, "m"}, "w").errc(); };
  EXPECT_EQ(code(Status::not_sent), Errc::connection_failed);
  EXPECT_EQ(code(Status::bad_revision), Errc::connection_failed);
  EXPECT_EQ(code(Status::lease_gone), Errc::session_expired);
  EXPECT_EQ(code(Status::token_expired), Errc::permission_denied);
  EXPECT_EQ(code(Status::refused), Errc::permission_denied);
  EXPECT_EQ(code(Status::unimplemented), Errc::unsupported);
  EXPECT_EQ(code(Status::failed), Errc::store_error);
}

}  // namespace
}  // namespace baton::etcd

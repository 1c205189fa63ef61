// What answers of etcd mean.
#include "etcd/status.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::internal {
namespace {

EtcdStatus status(int code, const std::string& message = "") {
  return etcd_status({code, message});
}

TEST(EtcdStatusTest, WhatHasNoAnswerMayHaveHappened) {
  EXPECT_EQ(status(1, "CANCELLED"), EtcdStatus::lost);
  EXPECT_EQ(status(2, "unknown"), EtcdStatus::lost);
  EXPECT_EQ(status(4, "Deadline Exceeded"), EtcdStatus::lost);
  EXPECT_EQ(status(10, "aborted"), EtcdStatus::lost);
  EXPECT_EQ(status(13, "internal"), EtcdStatus::lost);
  EXPECT_EQ(status(14, "Socket closed"), EtcdStatus::lost);
  EXPECT_EQ(status(14, "etcdserver: request timed out"), EtcdStatus::lost);
  EXPECT_EQ(status(14, "etcdserver: leader changed"), EtcdStatus::lost);
  EXPECT_EQ(status(99), EtcdStatus::lost) << "whatever gRPC invents";
}

TEST(EtcdStatusTest, WhatWasRefusedAtTheDoorHasNotHappened) {
  EXPECT_EQ(status(14, "etcdserver: no leader"), EtcdStatus::not_sent);
  EXPECT_EQ(status(8, "etcdserver: too many requests"), EtcdStatus::not_sent);
  EXPECT_EQ(status(8, "etcdserver: mvcc: database space exceeded"), EtcdStatus::lost)
      << "said of transactions that were applied, too";
}

TEST(EtcdStatusTest, BothPassByThemselves) {
  EXPECT_TRUE(etcd_passes(EtcdStatus::lost));
  EXPECT_TRUE(etcd_passes(EtcdStatus::not_sent));
  for (const auto other :
       {EtcdStatus::ok, EtcdStatus::lease_gone, EtcdStatus::bad_revision, EtcdStatus::token_expired,
        EtcdStatus::refused, EtcdStatus::unimplemented, EtcdStatus::failed}) {
    EXPECT_FALSE(etcd_passes(other));
  }
}

TEST(EtcdStatusTest, LeaseThatIsNotFoundIsGone) {
  EXPECT_EQ(status(5, "etcdserver: requested lease not found"), EtcdStatus::lease_gone);
  EXPECT_EQ(status(5, "etcdserver: member not found"), EtcdStatus::failed);
}

TEST(EtcdStatusTest, RevisionsThatCannotBeReadAreNoError) {
  EXPECT_EQ(status(11, "etcdserver: mvcc: required revision has been compacted"),
            EtcdStatus::bad_revision);
  EXPECT_EQ(status(11, "etcdserver: mvcc: required revision is a future revision"),
            EtcdStatus::bad_revision);
}

TEST(EtcdStatusTest, TokensRunOutAndAgeWithTheRoles) {
  EXPECT_EQ(status(16, "etcdserver: invalid auth token"), EtcdStatus::token_expired);
  EXPECT_EQ(status(3, "etcdserver: revision of auth store is old"), EtcdStatus::token_expired);
}

TEST(EtcdStatusTest, WhoMayNotIsRefused) {
  EXPECT_EQ(status(7, "etcdserver: permission denied"), EtcdStatus::refused);
  EXPECT_EQ(status(3, "etcdserver: user name is empty"), EtcdStatus::refused);
  EXPECT_EQ(status(3, "etcdserver: authentication failed, invalid user ID or password"),
            EtcdStatus::refused);
}

TEST(EtcdStatusTest, TheRestIsFinal) {
  EXPECT_EQ(status(0), EtcdStatus::ok);
  EXPECT_EQ(status(3, "etcdserver: key is not provided"), EtcdStatus::failed);
  EXPECT_EQ(status(9, "etcdserver: authentication is not enabled"), EtcdStatus::failed);
  EXPECT_EQ(status(12, "unknown service"), EtcdStatus::unimplemented);
  EXPECT_EQ(status(15, "etcdserver: corrupt cluster"), EtcdStatus::failed);
}

TEST(EtcdStatusTest, ErrorsSayWhatWasDoneAndWhatHappened) {
  const auto error = etcd_error(EtcdStatus::lost, {14, "Socket closed"}, "join /app/job/");
  EXPECT_EQ(error.errc(), Errc::connection_failed);
  EXPECT_STREQ(error.what(), "join /app/job/: Socket closed (gRPC status 14)");
  EXPECT_NE(
      std::string(etcd_error(EtcdStatus::lost, {4, ""}, "x").what()).find("no answer in time"),
      std::string::npos);
}

TEST(EtcdStatusTest, EachStatusHasItsError) {
  const auto code = [](EtcdStatus status) { return etcd_error(status, {2, "m"}, "w").errc(); };
  EXPECT_EQ(code(EtcdStatus::not_sent), Errc::connection_failed);
  EXPECT_EQ(code(EtcdStatus::bad_revision), Errc::connection_failed);
  EXPECT_EQ(code(EtcdStatus::lease_gone), Errc::session_expired);
  EXPECT_EQ(code(EtcdStatus::token_expired), Errc::permission_denied);
  EXPECT_EQ(code(EtcdStatus::refused), Errc::permission_denied);
  EXPECT_EQ(code(EtcdStatus::unimplemented), Errc::unsupported);
  EXPECT_EQ(code(EtcdStatus::failed), Errc::store_error);
}

}  // namespace
}  // namespace baton::internal

// Tickets of the etcd store, through the Session interface.
#include "fake_etcd_client.h"
#include "seam_cases.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdSessionTest : public ::testing::Test {
 protected:
  static FakeFate txns(const FakeAsked& asked, const FakeFate& fate) {
    return asked.call == Call::txn ? fate : FakeFate{};
  }
  ManualLoop loop;
  FakeEtcd etcd{loop};
  FakeEtcdClient ann{etcd};
};

TEST_F(EtcdSessionTest, FreeLockIsOneTransaction) {
  const auto asked = ann.settled(ann.join(1));
  EXPECT_TRUE(holder(asked, 1));
  EXPECT_EQ(ann.wire.log().size(), 1u);
  EXPECT_EQ(ann.wire.log()[0].call, Call::txn);
  ASSERT_EQ(ann.keys().size(), 1u);
  const auto& kv = *etcd.find(ann.keys()[0]);
  EXPECT_EQ(asked->value().token, static_cast<std::uint64_t>(kv.create_revision()));
  EXPECT_EQ(kv.lease(), etcd.leases().at(0));
  EXPECT_TRUE(kv.value().ends_with("the label"));
}

TEST_F(EtcdSessionTest, LostAnswerOfAJoinIsTheSameTransactionAgain) {
  for (const bool landed : {false, true}) {
    const std::uint64_t nonce = landed ? 2 : 1;
    const std::string lock = landed ? "landed" : "lost";
    ann.wire.take_log();
    ann.wire.fate = [&](const FakeAsked& asked) {
      return txns(asked, landed ? lost_answer() : lost_request());
    };
    const auto lost = ann.settled(ann.join(nonce, lock));
    EXPECT_TRUE(transient(lost->error()));
    ann.wire.fate = nullptr;
    const auto found = ann.settled(ann.join(nonce, lock));
    EXPECT_TRUE(holder(found, nonce));
    EXPECT_EQ(ann.keys(lock).size(), 1u);
    const auto log = ann.wire.take_log();
    ASSERT_EQ(ann.wire.count(Call::txn), 0u);
    const auto key = [](const FakeAsked& asked) {
      return asked.as<etcdpb::TxnRequest>().compare(0).key();
    };
    ASSERT_EQ(log.size(), 2u);
    EXPECT_EQ(key(log[0]), key(log[1]));
    EXPECT_EQ(found->value().token,
              static_cast<std::uint64_t>(etcd.find(ann.keys(lock)[0])->create_revision()));
  }
}

TEST_F(EtcdSessionTest, BurstOfJoinsKeepsItsOrder) {
  ann.wire.fate = [n = 0](const FakeAsked&) mutable {
    return FakeFate{.there = ++n % 2 == 0 ? Nanos(1ms) : Nanos(9ms)};
  };
  std::vector<AskedPtr<Standing>> asked;
  for (std::uint64_t nonce = 1; nonce <= 30; ++nonce) asked.push_back(ann.join(nonce));
  ann.pass(1s);
  for (std::size_t n = 1; n < asked.size(); ++n) {
    ASSERT_TRUE(asked[n]->ok());
    EXPECT_GT(asked[n]->value().token, asked[n - 1]->value().token);
    EXPECT_EQ(asked[n]->value().view.tickets.size(), 2u);
  }
}

TEST_F(EtcdSessionTest, ReleasedLockIsNotFoundTaken) {
  ann.settled(ann.join(1));
  ann.wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::txn && asked.as<etcdpb::TxnRequest>().success_size() == 1
               ? FakeFate{.there = 50ms}
               : FakeFate{};
  };
  ann.withdraw(1);
  const auto joined = ann.join(2);
  const auto peeked = ann.peek();
  ann.pass(200ms);
  EXPECT_TRUE(holder(joined, 2));
  ASSERT_TRUE(peeked->ok());
}

TEST_F(EtcdSessionTest, EntriesOfLocksBelowAreNotAhead) {
  for (int n = 0; n < 40; ++n) etcd.put("/app/job/below/" + std::to_string(n));
  EXPECT_TRUE(holder(ann.settled(ann.join(1)), 1));
  EXPECT_TRUE(holder(ann.settled(ann.look(1)), 1));
  EXPECT_TRUE(ann.settled(ann.verify(1))->value());
}

TEST_F(EtcdSessionTest, OneAheadBehindManyOfLocksBelowIsFound) {
  etcd.put("/app/job/first");
  for (int n = 0; n < 40; ++n) etcd.put("/app/job/below/" + std::to_string(n));
  const auto asked = ann.settled(ann.join(1));
  ASSERT_EQ(asked->value().view.tickets.size(), 2u);
  EXPECT_EQ(asked->value().view.tickets[0].id, "first@2");
}

TEST_F(EtcdSessionTest, PeekSeesDirectEntriesAlone) {
  EXPECT_FALSE(ann.settled(ann.peek())->value());
  for (int n = 0; n < 40; ++n) etcd.put("/app/job/below/" + std::to_string(n));
  EXPECT_FALSE(ann.settled(ann.peek())->value());
  etcd.put("/app/job/zz");
  EXPECT_TRUE(ann.settled(ann.peek())->value());
  EXPECT_EQ(ann.wire.count(Call::txn), 0u) << "it writes nothing";
}

TEST_F(EtcdSessionTest, VerifyWaitsForTheStore) {
  ann.settled(ann.join(1));
  ann.wire.silence(0);
  const auto asked = ann.verify(1);
  ann.pass(1'500ms);
  EXPECT_FALSE(asked->got);
  ann.wire.silence(0, false);
  EXPECT_TRUE(ann.settled(asked)->value());
}

TEST_F(EtcdSessionTest, RefusedJoinLeavesNothing) {
  ann.wire.fate = [](const FakeAsked& asked) {
    return txns(asked, refused(7, "etcdserver: permission denied"));
  };
  EXPECT_EQ(ann.settled(ann.join(1))->error().errc(), Errc::permission_denied);
  ann.wire.fate = nullptr;
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  EXPECT_EQ(ann.wire.count(Call::txn), 1u) << "nothing to remove";
  EXPECT_TRUE(holder(ann.settled(ann.join(2)), 2));
}

TEST_F(EtcdSessionTest, JoinThatIsRefusedForAMomentIsNotInDoubt) {
  ann.wire.fate = [](const FakeAsked& asked) {
    return txns(asked, refused(8, "etcdserver: too many requests"));
  };
  EXPECT_TRUE(transient(ann.settled(ann.join(1))->error()));
  ann.wire.fate = nullptr;
  ann.wire.take_log();
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  EXPECT_TRUE(ann.wire.log().empty());
  EXPECT_EQ(etcd.leases().size(), 1u) << "the lease is still good";
}

// ---- the end of the session

TEST_F(EtcdSessionTest, LeaseThatIsGoneEndsTheSession) {
  etcd.revoke(etcd.leases().at(0));
  const auto asked = ann.join(1);
  ann.pass(100ms);
  ASSERT_EQ(ann.ended.size(), 1u);
  EXPECT_EQ(ann.ended[0].first, Errc::session_expired);
  EXPECT_FALSE(asked->got);
  EXPECT_TRUE(ann.session().lease()->ended());
}

TEST_F(EtcdSessionTest, OwnKeyDeletedWhileHeldIsSeen) {
  const auto asked = ann.settled(ann.join(1));
  const auto events = ann.watch(asked->value().view.tickets[0]);
  ann.pass(500ms);
  EXPECT_FALSE(asked->value().sign->evicted());
  etcd.remove(ann.keys()[0]);
  ann.pass(500ms);
  EXPECT_TRUE(asked->value().sign->evicted());
  EXPECT_EQ(*events, 1);
  EXPECT_TRUE(ann.ended.empty());
  EXPECT_TRUE(gone(ann.settled(ann.look(1))));
}

TEST_F(EtcdSessionTest, RevokedLeaseIsTheEndOfTheSessionNotOfOneHold) {
  const auto asked = ann.settled(ann.join(1));
  ann.watch(asked->value().view.tickets[0]);
  ann.pass(500ms);
  etcd.revoke(etcd.leases().at(0));
  ann.pass(10ms);
  ASSERT_EQ(ann.ended.size(), 1u);
  EXPECT_EQ(ann.ended[0].first, Errc::session_expired);
}

TEST_F(EtcdSessionTest, RestoredStoreEndsTheSession) {
  for (int n = 0; n < 5; ++n) etcd.put("x");
  ann.settled(ann.join(1));
  etcd.set_back(2);
  ann.look(1);
  ann.pass(100ms);
  ASSERT_EQ(ann.ended.size(), 1u);
  EXPECT_EQ(ann.ended[0].first, Errc::store_changed);
}

TEST_F(EtcdSessionTest, LeaseThatRanOutHereButNotThereBeginsAnew) {
  const auto old = ann.session().lease();
  ann.settled(ann.join(1));
  const auto id = etcd.leases().at(0);
  // The store renews the lease, but the client does not learn it.
  ann.wire.silence(0);
  for (int n = 0; n < 8; ++n) {
    ann.pass(1s);
    etcdpb::LeaseKeepAliveRequest request;
    request.set_id(id);
    etcdpb::LeaseKeepAliveResponse response;
    etcd.keep_alive(0, request, response);
  }
  EXPECT_GE(loop.now(), old->deadline());
  ann.wire.silence(0, false);
  ann.pass(3s);
  EXPECT_TRUE(ann.ended.empty());
  EXPECT_TRUE(old->ended()) << "what was held under it stays lost";
  EXPECT_NE(ann.session().lease(), old);
  EXPECT_GT(ann.session().lease()->deadline(), loop.now());
  EXPECT_TRUE(holder(ann.settled(ann.look(1)), 1)) << "who waits keeps his place";
}

TEST_F(EtcdSessionTest, ContactThatIsBackIsTold) {
  ann.wire.silence(0);
  ann.settled(ann.peek());
  ann.settled(ann.peek());  // a single silence is not an outage
  EXPECT_EQ(ann.session().info().state, SessionState::suspect);
  ann.wire.silence(0, false);
  ann.settled(ann.peek());
  ann.pass();
  EXPECT_EQ(ann.resumed, 1);
  EXPECT_EQ(ann.session().info().state, SessionState::connected);
}

TEST_F(EtcdSessionTest, CloseRevokesEverything) {
  ann.settled(ann.join(1));
  EXPECT_TRUE(ann.settled(ann.close())->ok());
  EXPECT_TRUE(etcd.leases().empty());
  EXPECT_TRUE(ann.keys().empty());
}

TEST_F(EtcdSessionTest, OpeningTriesOn) {
  FakeEtcdClient bob(etcd, {.open = false});
  bob.wire.take_down(0);
  bob.pass(1s);
  ASSERT_GE(bob.opened.size(), 1u);
  EXPECT_FALSE(bob.opened[0]);
  bob.wire.bring_up(0);
  bob.pass(1s);
  EXPECT_TRUE(bob.opened.back());
  EXPECT_EQ(bob.session().info().server_version, "3.5.0");
}

TEST_F(EtcdSessionTest, AnotherClusterWhileOpeningIsTheEndOfThatSession) {
  FakeEtcdClient bob(etcd, {.open = false});
  bob.cluster_state.cluster = 99;
  bob.pass(1s);
  ASSERT_EQ(bob.opened.size(), 1u);
  EXPECT_TRUE(transient(bob.opened[0].error())) << "the next session may find the right one";
  EXPECT_EQ(bob.session().info().state, SessionState::closed);
  EXPECT_TRUE(bob.ended.empty());
}

// ---- destroyed

TEST_F(EtcdSessionTest, NoAnswerComesAfterItIsDestroyed) {
  std::vector<std::shared_ptr<int>> answers;
  const auto count = [&] {
    answers.push_back(std::make_shared<int>(0));
    return [n = answers.back()](const auto&) { ++*n; };
  };
  ann.settled(ann.join(1));
  loop.step([&] {
    auto& session = ann.session();
    const auto job = lock_name("job");
    session.look(job, Nonce{9}, {}, count());
    session.verify(job, Nonce{9}, count());
    session.withdraw(job, Nonce{9}, count());
    session.join(job, Nonce{2}, count());
    session.look(job, Nonce{1}, {}, count());
    session.peek(job, count());
    session.close(count());
    ann.destroy();
  });
  loop.advance(20s);
  for (const auto& n : answers) EXPECT_EQ(*n, 0);
}

TEST_F(EtcdSessionTest, DestroyedAtAnyMomentWithEverythingUnderWay) {
  for (int moment = 0; moment < 60; ++moment) {
    FakeEtcdClient bob(etcd, {.open = false});
    bob.wire.fate = [n = 0](const FakeAsked&) mutable {
      return ++n % 5 == 0 ? lost_answer() : FakeFate{.there = 1ms * (n % 7)};
    };
    bob.pass(1ms * (moment < 10 ? moment : 40));
    for (std::uint64_t nonce = 1; nonce <= 4; ++nonce) bob.join(nonce);
    bob.peek();
    bob.inspect();
    bob.evict("nobody");
    bob.list();
    bob.pass(1ms * (moment % 20));
    for (std::uint64_t nonce = 1; nonce <= 4; ++nonce) {
      bob.withdraw(nonce);
      bob.watch({7, "somebody@7", std::nullopt});
    }
    if (moment % 2 == 0) bob.close();
    bob.pass(1ms * (moment / 3));
    bob.destroy();
    bob.pass(3s);
  }
}

// ---- the cases that the sessions of all clusters share

struct EtcdStore {
  using Client = FakeEtcdClient;
  Client second_client() { return Client(etcd); }
  static FakeEtcdWire& wire(Client& client) { return client.wire; }
  Texts entries() const { return etcd.keys("/app/job/"); }
  void remove(const std::string& entry) { etcd.remove(entry); }

  ManualLoop loop;
  FakeEtcd etcd{loop};
  Client ann{etcd};
};
INSTANTIATE_TYPED_TEST_SUITE_P(Etcd, SeamCases, EtcdStore);

}  // namespace
}  // namespace baton::etcd

// The connection breaks at every place: before each request reaches the server, and before each
// answer reaches the client. The test repeats the lost requests, as the engine does.
#include "fake_zk_client.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace baton::zk {
namespace {

// A fresh ensemble and one client.
struct World {
  ManualLoop loop;
  FakeZk zk{loop};
  FakeZkClient ann{zk};
  const std::string where = "a/b";  // "/app/a/b"

  void expect_one_entry(const AskedPtr<Standing>& joined) {
    ASSERT_TRUE(joined->ok());
    ASSERT_EQ(ann.entries().size(), 1u) << "exactly one entry of ours";
    const std::string path = ann.entries()[0];
    const Standing& standing = joined->value();
    ASSERT_FALSE(standing.view.tickets.empty());
    EXPECT_EQ("/app/a/b/" + standing.view.tickets.back().id, path);
    EXPECT_EQ(standing.view.tickets.back().ours, Nonce{1});
    EXPECT_EQ(standing.token, zk.find(path)->created_at) << "the token is its czxid";
  }
  AskedPtr<Standing> join() {
    return ann.persist([&] { return ann.join(1, where); });
  }
  AskedPtr<WithdrawResult> withdraw() {
    return ann.persist([&] { return ann.withdraw(1, where); });
  }
  // Expects that no entry of the client exists, and that none appears later.
  void expect_gone() {
    ann.move_until_idle();
    EXPECT_TRUE(ann.entries().empty());
    EXPECT_TRUE(ann.ended.empty());
  }
};

// Runs `body` with one cut at every place, and with two cuts at every pair of places, until
// `body` ends before the cut is reached. `body` returns true if all cuts have happened. Returns the
// number of runs.
int everywhere(const std::function<bool(const CutPlan&)>& body, bool twice = true) {
  int runs = 0;
  for (int mode = 0; mode < 8; ++mode) {
    const auto run = [&](std::vector<int> cuts) {
      CutPlan plan{std::move(cuts), (mode & 1) != 0, (mode & 2) != 0, (mode & 4) != 0};
      std::string trace = plan.rest_reaches_server ? "the rest arrives" : "the rest is lost";
      trace += plan.answers_first ? ", answers first" : ", requests first";
      trace += plan.behind ? ", the next server is behind" : "";
      for (const int cut : plan.cuts) trace += ", cut at " + std::to_string(cut);
      SCOPED_TRACE(trace);
      ++runs;
      return body(plan) && !::testing::Test::HasFailure();
    };
    for (int first = 0; run({first}) && first < 200; ++first) {
      for (int second = 0; twice && run({first, second}) && second < 200; ++second) {
      }
    }
  }
  return runs;
}

TEST(ZkCutTest, JoinOfAFreeLock) {
  EXPECT_GT(everywhere([](const CutPlan& plan) {
              World world;
              world.zk.put("/app/a/b");
              world.ann.plan(plan);
              const auto joined = world.join();
              const bool all = world.ann.all_cut();
              world.expect_one_entry(joined);
              EXPECT_EQ(joined->value().view.tickets.size(), 1u);
              EXPECT_TRUE(world.withdraw()->value().found);
              world.expect_gone();
              return all;
            }),
            100);
}

TEST(ZkCutTest, JoinThatMakesItsDirectories) {
  EXPECT_GT(everywhere([](const CutPlan& plan) {
              World world;
              world.ann.plan(plan);
              const auto joined = world.join();
              const bool all = world.ann.all_cut();
              world.expect_one_entry(joined);
              EXPECT_TRUE(world.withdraw()->value().found);
              world.expect_gone();
              return all;
            }),
            300);
}

TEST(ZkCutTest, JoinBehindSomebody) {
  everywhere([](const CutPlan& plan) {
    World world;
    world.zk.put("/app/a/b/other-lock-0000000000", FakeNode::Kind::entry, "", 77);
    world.ann.plan(plan);
    const auto joined = world.join();
    const bool all = world.ann.all_cut();
    world.expect_one_entry(joined);
    EXPECT_EQ(joined->value().view.tickets.size(), 2u);
    EXPECT_TRUE(world.withdraw()->value().found);
    world.expect_gone();
    EXPECT_NE(world.zk.find("/app/a/b/other-lock-0000000000"), nullptr);
    return all;
  });
}

TEST(ZkCutTest, Look) {
  everywhere([](const CutPlan& plan) {
    World world;
    world.join();
    world.ann.plan(plan);
    const auto looked = world.ann.persist([&] { return world.ann.look(1, world.where); });
    const bool all = world.ann.all_cut();
    world.expect_one_entry(looked);
    return all;
  });
}

TEST(ZkCutTest, Peek) {
  everywhere([](const CutPlan& plan) {
    World world;
    world.join();
    world.ann.plan(plan);
    const auto busy = world.ann.persist([&] { return world.ann.peek(world.where); });
    EXPECT_TRUE(busy->value());
    return world.ann.all_cut();
  });
}

TEST(ZkCutTest, Verify) {
  everywhere([](const CutPlan& plan) {
    World world;
    world.join();
    world.ann.plan(plan);
    const auto verified = world.ann.verify(1, world.where);  // waits for a connection by itself
    while (!verified->got && world.ann.move()) {
    }
    EXPECT_TRUE(verified->ok() && verified->value());
    return world.ann.all_cut();
  });
}

TEST(ZkCutTest, WithdrawOfATicketThatIsThere) {
  everywhere([](const CutPlan& plan) {
    World world;
    world.join();
    world.ann.plan(plan);
    const auto gone = world.withdraw();
    const bool all = world.ann.all_cut();
    EXPECT_TRUE(gone->value().found) << "by us, though the answer may have been lost";
    world.expect_gone();
    return all;
  });
}

TEST(ZkCutTest, WithdrawOfATicketInDoubt) {
  for (const bool landed : {false, true}) {
    everywhere([landed](const CutPlan& plan) {
      World world;
      world.zk.put("/app/a/b");
      world.ann.join(1, world.where);
      if (landed) {
        world.ann.wire().cut_after_requests();
      } else {
        world.ann.wire().cut();
      }
      world.ann.plan(plan);
      const auto gone = world.withdraw();
      const bool all = world.ann.all_cut();
      EXPECT_TRUE(gone->ok());
      world.expect_gone();
      return all;
    });
  }
}

TEST(ZkCutTest, InspectListAndEvict) {
  everywhere(
      [](const CutPlan& plan) {
        World world;
        world.join();
        world.ann.plan(plan);
        FakeZkClient& ann = world.ann;
        const auto seen = ann.persist([&] { return ann.inspect(world.where); });
        EXPECT_TRUE(seen->ok() && seen->value().entries.size() == 1u);
        const auto listed = ann.persist([&] { return ann.list(); });
        EXPECT_TRUE(listed->ok() && listed->value() == Texts{world.where});
        const std::string id = entry_prefix(ann.id(1)) + "0000000000";
        const auto evicted = ann.persist([&] { return ann.evict(id, world.where); });
        EXPECT_TRUE(evicted->ok() && evicted->value());
        const bool all = ann.all_cut();
        world.expect_gone();
        return all;
      },
      false);
}

// All operations in one sequence, so that a cut also meets the state that earlier operations left.
TEST(ZkCutTest, WholeLife) {
  everywhere(
      [](const CutPlan& plan) {
        World world;
        FakeZkClient& ann = world.ann;
        ann.plan(plan);
        const auto joined = world.join();
        world.expect_one_entry(joined);
        const auto looked = ann.persist([&] { return ann.look(1, world.where); });
        EXPECT_EQ(looked->value().token, joined->value().token);
        const auto verified = ann.persist([&] { return ann.verify(1, world.where); });
        EXPECT_TRUE(verified->value());
        EXPECT_TRUE(world.withdraw()->value().found);
        const bool all = ann.all_cut();
        world.expect_gone();
        return all;
      },
      false);
}

// Gives up a join after every number of deliveries, with a cut at every place. After the withdraw
// the entry is gone and does not appear later.
TEST(ZkCutTest, GivingUpAnywhereLeavesNoEntry) {
  for (const bool directory_there : {false, true}) {
    for (int moves = 0, reached = 1; reached != 0; ++moves) {
      reached = 0;
      SCOPED_TRACE("given up after " + std::to_string(moves));
      everywhere(
          [&](const CutPlan& plan) {
            World world;
            FakeZkClient& ann = world.ann;
            if (directory_there) world.zk.put("/app/a/b");
            ann.plan(plan);
            auto joined = ann.join(1, world.where);
            for (int n = 0; n < moves && !joined->ok(); ++n) {
              if (joined->got) joined = ann.join(1, world.where);
              ann.move();
            }
            if (!joined->ok()) ++reached;
            const auto gone = world.withdraw();
            EXPECT_TRUE(gone->ok());
            const bool all = ann.all_cut();
            EXPECT_TRUE(ann.entries().empty()) << "gone";
            world.expect_gone();
            EXPECT_TRUE(joined->got);
            return all;
          },
          false);
      ASSERT_LT(moves, 200);
      if (HasFailure()) return;
    }
  }
}

// ---- single cases

TEST(ZkCutTest, ListThatIsLostAfterTheCreateIsAskedForAlone) {
  World world;
  FakeZkClient& ann = world.ann;
  world.zk.put("/app/a/b");
  const auto first = ann.join(1, world.where);
  ann.wire().deliver_request();
  ann.wire().deliver_answer();  // the create
  ann.wire().cut();
  ASSERT_TRUE(first->got);
  EXPECT_TRUE(transient(first->error()));
  ann.wire().connect();
  ann.wire().settle();
  ann.wire().take_log();
  const auto second = ann.join(1, world.where);
  EXPECT_EQ(texts(ann.wire().take_log()), Texts{"children /app/a/b"});
  ann.wire().settle();
  world.expect_one_entry(second);
}

// A server that lags behind does not show the entry before a sync.
TEST(ZkCutTest, LostCreateIsFoundThroughAServerThatIsBehind) {
  for (const bool give_up : {false, true}) {
    World world;
    FakeZkClient& ann = world.ann;
    world.zk.put("/app/a/b");
    EXPECT_FALSE(ann.settled(ann.peek(world.where))->value());
    ann.join(1, world.where);
    ann.wire().cut_after_requests();
    ASSERT_EQ(ann.entries().size(), 1u);
    ann.wire().connect_behind();
    if (give_up) {
      EXPECT_TRUE(world.withdraw()->ok());
      world.expect_gone();
    } else {
      world.expect_one_entry(world.join());
    }
  }
}

// A request sees what other clients did before it, even if the server lags behind.
TEST(ZkCutTest, QuestionsSeeWhatHappenedThroughAServerThatIsBehind) {
  World world;
  FakeZkClient& ann = world.ann;
  world.join();
  const auto behind = [&](const std::function<void()>& change) {
    ann.wire().cut();
    change();
    ann.wire().connect_behind();
  };
  const std::string other = "/app/a/b/other-lock-0000000009";
  behind([&] { world.zk.put(other, FakeNode::Kind::entry, "", 77); });
  EXPECT_EQ(ann.settled(ann.inspect(world.where))->value().entries.size(), 2u);
  behind([&] { world.zk.put("/app/q/other-lock-0000000000"); });
  EXPECT_EQ(ann.settled(ann.list())->value(), (Texts{"a/b", "q"}));
  behind([&] { world.zk.remove("/app/q"); });
  EXPECT_FALSE(ann.settled(ann.peek("q"))->value());
  behind([&] { world.zk.remove(ann.entries().at(0)); });
  EXPECT_FALSE(ann.settled(ann.verify(1, world.where))->value());
}

// Names are unique, so this entry is forged, or part of a copied tree.
TEST(ZkCutTest, OnlyAnEntryOfOurSessionIsAdopted) {
  for (const std::int64_t owner : {std::int64_t{0}, std::int64_t{77}}) {
    World world;
    FakeZkClient& ann = world.ann;
    world.zk.put("/app/a/b");
    const std::string forged = "/app/a/b/" + entry_prefix(ann.id(1)) + "0000000000";
    world.zk.put(forged, FakeNode::Kind::entry, "", owner);
    ann.join(1, world.where);
    ann.wire().cut();
    const auto joined = world.join();
    world.expect_one_entry(joined);
    EXPECT_EQ(joined->value().view.tickets.size(), 2u) << "and it stands ahead of us";
    EXPECT_NE(joined->value().token, world.zk.find(forged)->created_at);
  }
}

}  // namespace
}  // namespace baton::zk

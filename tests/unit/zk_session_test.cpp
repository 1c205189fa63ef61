// Tickets of the ZooKeeper store, on a connection that does not break.
#include "fake_zk_client.h"
#include "seam_cases.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <string>
#include <vector>

namespace baton::zk {
namespace {

using Kind = Request::Kind;

class ZkSessionTest : public ::testing::Test {
 protected:
  ManualLoop loop;
  FakeZk zk{loop};

  // The ticket is alone in the view.
  static void expect_holder(const AskedPtr<Standing>& asked, std::uint64_t nonce) {
    EXPECT_TRUE(holder(asked, nonce));
  }
  static bool says(const Error& error, const std::string& part) {
    return std::string(error.what()).find(part) != std::string::npos;
  }
};

TEST_F(ZkSessionTest, FreeLockIsACreateAndAListInOneExchange) {
  zk.put("/app/job");
  FakeZkClient ann(zk);
  const auto asked = ann.join(1);
  const std::string entry = "/app/job/" + ann.id(1) + "-lock-";
  EXPECT_EQ(texts(ann.wire().take_log()), (Texts{"create_entry " + entry, "children /app/job"}));
  ann.wire().exchange();
  expect_holder(asked, 1);
  EXPECT_EQ(ann.entries(), Texts{entry + "0000000000"});
  EXPECT_EQ(asked->value().token, zk.find(entry + "0000000000")->created_at);
  EXPECT_EQ(asked->value().view.tickets[0].id, ann.id(1) + "-lock-0000000000");
  EXPECT_EQ(ann.wire().take_log().size(), 0u);
}

TEST_F(ZkSessionTest, EntryCarriesTheLabel) {
  zk.put("/app/job");
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  EXPECT_EQ(zk.find(ann.entries().at(0))->data, encode_label("label of AAAAAAAA"));
}

TEST_F(ZkSessionTest, RootMayBeEmpty) {
  FakeZkClient ann(zk, {.root = ""});
  expect_holder(ann.settled(ann.join(1, "a/b")), 1);
  EXPECT_EQ(ann.entries(), Texts{"/a/b/" + ann.id(1) + "-lock-0000000000"});
}

TEST_F(ZkSessionTest, BurstOfJoinsSharesItsLists) {
  zk.put("/app/job");
  FakeZkClient ann(zk);
  std::vector<AskedPtr<Standing>> asked;
  for (std::uint64_t nonce = 1; nonce <= 50; ++nonce) asked.push_back(ann.join(nonce));
  ann.wire().settle();
  for (std::uint64_t nonce = 1; nonce <= 50; ++nonce) {
    ASSERT_TRUE(asked[nonce - 1]->ok());
    EXPECT_EQ(asked[nonce - 1]->value().view.tickets.back().ours, Nonce{nonce});
    EXPECT_EQ(asked[nonce - 1]->value().view.tickets.size(), nonce == 1 ? 1u : 2u);
  }
  const auto log = ann.wire().take_log();
  EXPECT_EQ(std::count_if(log.begin(), log.end(),
                          [](const Request& r) { return r.kind == Kind::children; }),
            2);
}

// ---- directories

TEST_F(ZkSessionTest, MissingDirectoriesAreMadeAsContainers) {
  FakeZkClient ann(zk);
  const auto asked = ann.join(1, "a/b");
  ann.wire().exchange();
  EXPECT_FALSE(asked->got);
  ann.wire().take_log();
  ann.wire().exchange();
  expect_holder(ann.settled(asked), 1);
  for (const char* path : {"/app", "/app/a", "/app/a/b"}) {
    ASSERT_NE(zk.find(path), nullptr) << path;
    EXPECT_EQ(zk.find(path)->kind, FakeNode::Kind::container) << path;
  }
}

TEST_F(ZkSessionTest, MissingDirectoriesArePermanentOnRequest) {
  FakeZkClient ann(zk, {.permanent_parents = true});
  expect_holder(ann.settled(ann.join(1, "a/b")), 1);
  for (const char* path : {"/app", "/app/a", "/app/a/b"}) {
    EXPECT_EQ(zk.find(path)->kind, FakeNode::Kind::permanent) << path;
  }
}

TEST_F(ZkSessionTest, ServerWithoutContainersGetsPermanentDirectories) {
  zk.refuse = [](const Request& request) {
    return request.kind == Kind::create_container ? int{ZUNIMPLEMENTED} : int{ZOK};
  };
  FakeZkClient ann(zk);
  expect_holder(ann.settled(ann.join(1)), 1);
  EXPECT_EQ(zk.find("/app/job")->kind, FakeNode::Kind::permanent);
  ann.wire().take_log();
  expect_holder(ann.settled(ann.join(2, "other")), 2);
  for (const auto& request : ann.wire().take_log()) {
    EXPECT_NE(request.kind, Kind::create_container) << "asked once";
  }
}

TEST_F(ZkSessionTest, ServerThatCanMakeNeitherIsTooOld) {
  zk.refuse = [](const Request& request) {
    return request.kind == Kind::create_container || request.kind == Kind::create_permanent
               ? int{ZUNIMPLEMENTED}
               : int{ZOK};
  };
  FakeZkClient ann(zk);
  EXPECT_EQ(ann.settled(ann.join(1))->error().errc(), Errc::unsupported);
}

TEST_F(ZkSessionTest, DirectoryThatVanishesInBetweenIsMadeAgain) {
  FakeZkClient ann(zk);
  int vanish = 3;
  zk.refuse = [&](const Request& request) {
    // The directory vanishes right before the entry is created.
    if (request.kind == Kind::create_entry && zk.find("/app/job") != nullptr && vanish-- > 0) {
      zk.remove("/app/job");
    }
    return int{ZOK};
  };
  expect_holder(ann.settled(ann.join(1)), 1);
  EXPECT_EQ(ann.entries().size(), 1u);
}

TEST_F(ZkSessionTest, LevelThatVanishesWhileTheOthersAreMadeIsMadeAgain) {
  FakeZkClient ann(zk);
  bool vanished = false;
  zk.refuse = [&](const Request& request) {
    if (text(request) == "create_container /app/a/b" && !std::exchange(vanished, true)) {
      zk.remove("/app");
    }
    return int{ZOK};
  };
  expect_holder(ann.settled(ann.join(1, "a/b")), 1);
  EXPECT_TRUE(vanished);
}

TEST_F(ZkSessionTest, ReapedContainerIsMadeAgainForTheNext) {
  FakeZkClient ann(zk);
  const auto first = ann.settled(ann.join(1));
  ann.settled(ann.withdraw(1));
  zk.reap();
  ASSERT_EQ(zk.find("/app"), nullptr);
  const auto second = ann.settled(ann.join(2));
  expect_holder(second, 2);
  EXPECT_EQ(second->value().view.tickets[0].id, ann.id(2) + "-lock-0000000000") << "counts anew";
  EXPECT_GT(second->value().token, first->value().token) << "yet the token grows";
}

TEST_F(ZkSessionTest, DirectoryThatKeepsVanishingIsAClearError) {
  FakeZkClient ann(zk);
  int made = 0;
  zk.refuse = [&](const Request& request) {
    if (request.kind == Kind::create_entry && zk.find("/app/job") != nullptr) {
      zk.remove("/app/job");
      ++made;
    }
    return int{ZOK};
  };
  const auto asked = ann.settled(ann.join(1));
  ASSERT_FALSE(asked->ok());
  EXPECT_EQ(asked->error().errc(), Errc::store_error);
  EXPECT_TRUE(says(asked->error(), "/app/job")) << asked->error().what();
  EXPECT_TRUE(says(asked->error(), "is removed each time")) << asked->error().what();
  EXPECT_GE(made, 3) << "not given up at once";
  zk.refuse = nullptr;
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  EXPECT_TRUE(ann.entries().empty());
}

TEST_F(ZkSessionTest, LevelsAboveMayBeOutOfReach) {
  zk.put("/app");
  zk.refuse = [](const Request& request) {
    return text(request) == "create_container /app" ? int{ZNOAUTH} : int{ZOK};
  };
  FakeZkClient ann(zk);
  expect_holder(ann.settled(ann.join(1)), 1);
}

TEST_F(ZkSessionTest, RefusedDirectoryIsPermissionDenied) {
  zk.put("/app");
  zk.refuse = [](const Request& request) {
    return request.kind == Kind::create_container ? int{ZNOAUTH} : int{ZOK};
  };
  FakeZkClient ann(zk);
  const auto asked = ann.settled(ann.join(1));
  ASSERT_FALSE(asked->ok());
  EXPECT_EQ(asked->error().errc(), Errc::permission_denied);
  EXPECT_TRUE(says(asked->error(), "/app/job")) << asked->error().what();
}

TEST_F(ZkSessionTest, RefusedEntryIsPermissionDeniedAndLeavesNothing) {
  zk.put("/app/job");
  zk.refuse = [](const Request& request) {
    return request.kind == Kind::create_entry ? int{ZNOAUTH} : int{ZOK};
  };
  FakeZkClient ann(zk);
  EXPECT_EQ(ann.settled(ann.join(1))->error().errc(), Errc::permission_denied);
  ann.wire().take_log();
  EXPECT_TRUE(ann.withdraw(1)->ok()) << "nothing was made, nothing is asked";
  EXPECT_TRUE(ann.wire().take_log().empty());
}

TEST_F(ZkSessionTest, EntryInTheWayIsAClearError) {
  zk.put("/app/job", FakeNode::Kind::entry, "", 77);
  FakeZkClient ann(zk);
  const auto asked = ann.settled(ann.join(1));
  ASSERT_FALSE(asked->ok());
  EXPECT_EQ(asked->error().errc(), Errc::store_error);
  EXPECT_TRUE(says(asked->error(), "not a directory")) << asked->error().what();
}

// ---- other nodes in the directory

TEST_F(ZkSessionTest, EntriesOfPeersCountAndOtherChildrenDoNot) {
  zk.put("/app/job/_c_0b5c1a6e-3f0a-4a3a-8a6e-9f3f6f8f2b11-lock-0000000000", FakeNode::Kind::entry,
         "10.0.0.7", 77);
  zk.put("/app/job/nested");
  zk.put("/app/job/leases-0000000000");
  zk.put("/app/job/9e1c0ffee9e1c0ffee9e1c0ffee00000__lock__0000000003", FakeNode::Kind::entry, "",
         78);
  FakeZkClient ann(zk);
  const auto asked = ann.settled(ann.join(1));
  ASSERT_TRUE(asked->ok());
  ASSERT_EQ(asked->value().view.tickets.size(), 2u);
  EXPECT_EQ(asked->value().view.tickets[0].id,
            "9e1c0ffee9e1c0ffee9e1c0ffee00000__lock__0000000003");
  EXPECT_EQ(asked->value().view.omitted_ahead, 1u);
}

TEST_F(ZkSessionTest, NestedLockDoesNotDisturb) {
  FakeZkClient ann(zk);
  expect_holder(ann.settled(ann.join(1, "a/b")), 1);
  expect_holder(ann.settled(ann.join(2, "a")), 2);
}

TEST_F(ZkSessionTest, ExhaustedDirectoryNeverGrantsAndTheEntryGoes) {
  zk.put("/app/job");
  zk.set_counter("/app/job", 2147483646);
  FakeZkClient ann(zk);
  expect_holder(ann.settled(ann.join(1)), 1);
  for (std::uint64_t nonce = 2; nonce <= 3; ++nonce) {
    const auto asked = ann.settled(ann.join(nonce));
    ASSERT_FALSE(asked->ok());
    EXPECT_EQ(asked->error().errc(), Errc::store_error);
    EXPECT_TRUE(says(asked->error(), "2147483647")) << asked->error().what();
    EXPECT_FALSE(ann.settled(ann.look(nonce))->ok());
    // The engine withdraws after this error.
    EXPECT_TRUE(ann.settled(ann.withdraw(nonce))->value().found);
  }
  EXPECT_EQ(ann.entries().size(), 1u) << "the one with a number of its own";
  ann.settled(ann.withdraw(1));
  const auto alone = ann.settled(ann.join(4));
  ASSERT_FALSE(alone->ok()) << "not even alone: the next one would have the same number";
  EXPECT_FALSE(ann.settled(ann.verify(4))->ok());
}

// ---- looking

TEST_F(ZkSessionTest, EntryIsMissingWhenTheDirectoryIsGone) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  zk.remove("/app");
  const auto asked = ann.settled(ann.look(1));
  ASSERT_TRUE(asked->ok());
  EXPECT_TRUE(asked->value().view.tickets.empty());
}

TEST_F(ZkSessionTest, PeekReadsBehindASync) {
  FakeZkClient ann(zk);
  const auto none = ann.peek();
  EXPECT_EQ(texts(ann.wire().take_log()), (Texts{"sync /app/job", "children /app/job"}));
  ann.wire().exchange();
  EXPECT_FALSE(none->value()) << "no directory, nobody in line";
  zk.put("/app/job/nested");
  EXPECT_FALSE(ann.settled(ann.peek())->value());
  ann.settled(ann.join(1));
  EXPECT_TRUE(ann.settled(ann.peek())->value());
}

TEST_F(ZkSessionTest, VerifyIsProvenByAWrite) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  ann.wire().take_log();
  const auto asked = ann.verify(1);
  EXPECT_EQ(texts(ann.wire().take_log()),
            (Texts{std::string("remove ") + kMissingNode, "children /app/job"}));
  ann.wire().exchange();
  EXPECT_TRUE(asked->value());
  zk.refuse = [](const Request& r) { return r.path == kMissingNode ? int{ZNOAUTH} : int{ZOK}; };
  EXPECT_TRUE(ann.settled(ann.verify(1))->value()) << "refused by everybody: decided all the same";
}

// ---- the cases that the sessions of all clusters share

struct ZkStore {
  using Client = FakeZkClient;
  Client second_client() { return Client(zk, {.client_id = "BBBBBBBB"}); }
  static FakeWire& wire(Client& client) { return client.wire(); }
  Texts entries() const { return zk.children("/app/job"); }
  void remove(const std::string& entry) { zk.remove("/app/job/" + entry); }

  ManualLoop loop;
  FakeZk zk{loop};
  Client ann{zk};
};
INSTANTIATE_TYPED_TEST_SUITE_P(Zk, SeamCases, ZkStore);

}  // namespace
}  // namespace baton::zk

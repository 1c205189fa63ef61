// Tokens never decrease, neither after a reboot nor after damage.
#include "file/token_counter.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace baton::file {
namespace {

const std::string kBoot = "00000000000000b1";
const std::string kNextBoot = "00000000000000b2";

class Tokens : public ::testing::Test {
 protected:
  std::string file(const std::string& boot = kBoot) const {
    return store.path() + "/tokens." + boot;
  }
  TokenPage read(const std::string& boot = kBoot) const {
    TokenPage page{};
    std::ifstream in(file(boot), std::ios::binary);
    in.read(reinterpret_cast<char*>(&page), sizeof page);
    EXPECT_EQ(in.gcount(), static_cast<std::streamsize>(sizeof page));
    return page;
  }
  void write(const std::string& bytes, const std::string& boot = kBoot) const {
    std::ofstream(file(boot), std::ios::binary | std::ios::trunc) << bytes;
  }
  void edit(const std::function<void(TokenPage&)>& change, const std::string& boot = kBoot) const {
    TokenPage page = read(boot);
    change(page);
    write(std::string(reinterpret_cast<const char*>(&page), sizeof page), boot);
  }
  bool exists(const std::string& boot) const { return ::access(file(boot).c_str(), F_OK) == 0; }

  // Opens a counter and allocates one token. Returns the text of the error, or "" on success.
  std::string trouble(const std::string& boot = kBoot) const {
    try {
      TokenCounter(store, boot).allocate(1);
      return "";
    } catch (const Error& e) {
      EXPECT_EQ(e.errc(), Errc::store_error);
      return e.what();
    }
  }

  test::TempDir temp;
  StoreDir store{temp / "store"};
};

TEST_F(Tokens, NewStoreStartsAtTheWallClock) {
  const auto wall = [] {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count());
  };
  const std::uint64_t before = wall();
  TokenCounter counter(store, kBoot);
  const std::uint64_t token = counter.allocate(64);
  EXPECT_GE(token, before);
  EXPECT_LE(token, wall() + 1);
  EXPECT_EQ(counter.allocate(1), token + 64);
}

TEST_F(Tokens, TwoClientsNeverGetTheSame) {
  std::vector<std::uint64_t> seen[4];
  std::vector<std::thread> threads;
  TokenCounter first(store, kBoot);
  for (auto& mine : seen) {
    threads.emplace_back([&] {
      TokenCounter counter(store, kBoot);
      for (int i = 0; i < 2000; ++i) mine.push_back(counter.allocate(3));
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<std::uint64_t> all;
  for (const auto& mine : seen) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) ASSERT_GE(all[i], all[i - 1] + 3);
}

TEST_F(Tokens, OpeningAtTheSameTimeMakesOneCounter) {
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> tokens(8);
  for (auto& token : tokens) {
    threads.emplace_back([&] { token = TokenCounter(store, kBoot).allocate(10); });
  }
  for (auto& thread : threads) thread.join();
  std::sort(tokens.begin(), tokens.end());
  for (std::size_t i = 1; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], tokens[i - 1] + 10);
}

TEST_F(Tokens, AllocationsStayBelowTheDurableLimit) {
  TokenCounter counter(store, kBoot);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t end = counter.allocate(4096) + 4096;
    const TokenPage page = read();
    ASSERT_LE(end, page.confirmed);
    ASSERT_LE(page.confirmed, page.pending);
  }
}

TEST_F(Tokens, NextBootContinuesAtTheLimitAndRemovesTheOldCounter) {
  const std::uint64_t last = TokenCounter(store, kBoot).allocate(64);
  const std::uint64_t limit = read().pending;
  EXPECT_EQ(TokenCounter(store, kNextBoot).allocate(1), limit);
  EXPECT_GT(limit, last + 63);
  EXPECT_FALSE(exists(kBoot));
  EXPECT_TRUE(exists(kNextBoot));
}

TEST_F(Tokens, PowerCutThatForgotTheLatestTokensDoesNotRepeatThem) {
  std::uint64_t last = 0;
  TokenPage durable{};
  {
    TokenCounter counter(store, kBoot);
    durable = read();  // what a sync has put on the disk
    last = counter.allocate(4096) + 4095;
  }
  edit([&](TokenPage& page) { page = durable; });
  EXPECT_GT(TokenCounter(store, kNextBoot).allocate(1), last);
}

TEST_F(Tokens, PowerCutBetweenTheNewCounterAndTheOldOnesEndIsHarmless) {
  TokenCounter(store, kBoot).allocate(1);
  const TokenPage old = read();
  const std::uint64_t next = TokenCounter(store, kNextBoot).allocate(1);
  // the disk has lost its unlink
  write(std::string(reinterpret_cast<const char*>(&old), sizeof old));
  EXPECT_GT(TokenCounter(store, "00000000000000b3").allocate(1), next);
}

TEST_F(Tokens, DamagedCountersAreRefused) {
  TokenCounter(store, kBoot).allocate(1);
  const TokenPage good = read();
  const auto with = [&](const std::function<void(TokenPage&)>& change) {
    edit([&](TokenPage& page) {
      page = good;
      change(page);
    });
    return trouble();
  };
  EXPECT_EQ(with([](TokenPage&) {}), "");
  const std::vector<std::function<void(TokenPage&)>> changes = {
      [](TokenPage& p) { p.magic = 0; },
      [](TokenPage& p) { p.version = 9; },
      [](TokenPage& p) { p.next = 0; },
      [](TokenPage& p) { p.next = ~std::uint64_t{0}; },
      [](TokenPage& p) { p.next = p.pending = p.confirmed = kTokenEnd; },
      [](TokenPage& p) { p.pending = ~std::uint64_t{0}; },
      [](TokenPage& p) { p.pending = p.confirmed - 1; },
      [](TokenPage& p) { p.next = p.confirmed + kTokenBlock + 1; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_NE(with(changes[i]).find("is damaged"), std::string::npos) << i;
  }
}

TEST_F(Tokens, EmptyShortAndGarbageCountersAreRefused) {
  for (const std::string& bytes : {std::string(), std::string(63, '\0'), std::string(64, '\0'),
                                   std::string(64, '\xff'), std::string("17\n")}) {
    write(bytes);
    EXPECT_NE(trouble().find("is damaged"), std::string::npos) << bytes.size();
    EXPECT_NE(trouble(kNextBoot).find("is damaged"), std::string::npos) << "as an old counter";
    EXPECT_FALSE(exists(kNextBoot));
  }
}

TEST_F(Tokens, CounterPutBackUnderARunningClientIsRefused) {
  TokenCounter counter(store, kBoot);
  counter.allocate(1);
  const TokenPage old = read();
  counter.allocate(4096);
  ASSERT_EQ(::unlink(file().c_str()), 0);
  write(std::string(reinterpret_cast<const char*>(&old), sizeof old));
  try {
    counter.allocate(1);
    FAIL() << "a token was given out twice";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("went back"), std::string::npos) << e.what();
  }
}

TEST_F(Tokens, LinksAreRefused) {
  TokenCounter(store, kBoot).allocate(1);
  ASSERT_EQ(::link(file().c_str(), (temp / "second").c_str()), 0);
  EXPECT_NE(trouble().find("hard link"), std::string::npos);
  ASSERT_EQ(::unlink(file().c_str()), 0);
  ASSERT_EQ(::symlink((temp / "second").c_str(), file().c_str()), 0);
  EXPECT_NE(trouble().find("symbolic link"), std::string::npos);
}

TEST_F(Tokens, BootIsSixteenHexDigits) {
  EXPECT_EQ(current_boot().size(), 16u);
  EXPECT_EQ(current_boot(), current_boot());
}

}  // namespace
}  // namespace baton::file

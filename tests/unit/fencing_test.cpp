// Executes, statement by statement, what docs/guarantees.md tells users to do with the token. The
// statements are read from that page, so wrong advice on the page fails here.
#include <baton/baton.h>
#include <baton/testing.h>

#include "support/log_capture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace baton {
namespace {

using Statements = std::vector<std::string>;

constexpr std::int64_t kStock = 10;

// Checks the token only at the write, which is not enough.
const Statements kCheckAtTheWrite{
    "SELECT items FROM orders WHERE id = 7",
    "UPDATE orders SET items = :items, fence = :token WHERE id = 7 AND fence <= :token"};

// The statements in the SQL block of a page, in order, without comments and semicolons.
Statements statements_of(const std::string& page) {
  std::istringstream lines(page);
  Statements found;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```sql";
    } else if (inside && line.find(';') != line.npos) {
      found.push_back(line.substr(0, line.find(';')));
    }
  }
  return found;
}

Statements documented() {
  std::ifstream file(BATON_SOURCE_DIR "/docs/guarantees.md");
  return statements_of({std::istreambuf_iterator<char>(file), {}});
}

struct Bindings {
  std::int64_t token = 0;  // signed, as a database column is
  std::int64_t items = 0;
};

// The table `orders` with the one row 7. Each statement is one step, as in a database.
class Orders {
 public:
  // Returns how many rows were changed or found.
  int run(const std::string& sql, Bindings& bound) {
    static const std::regex kUpdate("UPDATE orders SET (.+) WHERE id = 7 AND fence (<=|=) :token");
    static const std::regex kAssignment("(items|fence) = :(items|token)");
    if (sql == "SELECT items FROM orders WHERE id = 7") {
      bound.items = items_;
      return 1;
    }
    std::smatch update;
    if (!std::regex_match(sql, update, kUpdate)) throw std::invalid_argument("unknown: " + sql);
    if (update[2] == "=" ? fence_ != bound.token : fence_ > bound.token) return 0;
    const std::string list = update[1];
    for (std::sregex_iterator it(list.begin(), list.end(), kAssignment), end; it != end; ++it) {
      ((*it)[1] == "items" ? items_ : fence_) = (*it)[2] == "items" ? bound.items : bound.token;
    }
    return 1;
  }
  std::int64_t items() const { return items_; }
  std::int64_t fence() const { return fence_; }

 private:
  std::int64_t items_ = kStock;
  std::int64_t fence_ = 0;
};

// Sells one item: runs the statements one by one, and stops when a statement changes no row. It may
// be paused before any statement, and does not check its lock again.
class Seller {
 public:
  Seller(const Statements& statements, std::uint64_t token)
      : statements_(statements), bound_{static_cast<std::int64_t>(token), 0} {}

  void step(Orders& orders) {
    if (refused_ || sold()) return;
    const std::string& sql = statements_[next_++];
    refused_ = orders.run(sql, bound_) == 0;
    if (sql.starts_with("SELECT")) --bound_.items;
  }
  bool refused() const { return refused_; }
  bool sold() const { return !refused_ && next_ == statements_.size(); }

 private:
  const Statements& statements_;
  Bindings bound_;
  std::size_t next_ = 0;
  bool refused_ = false;
};

struct Tally {
  int orders_of_steps = 0;
  int lost_updates = 0;    // more sales were accepted than are missing from the stock
  int newest_refused = 0;  // the seller with the greatest token was stopped
  std::string first_bad;   // the steps, each by the index of its seller
};

class Fencing : public ::testing::Test {
 protected:
  // Returns the tokens of holders that were granted the lock one after the other. All but the last
  // were evicted. They are paused and do not know it.
  std::vector<std::uint64_t> grant(std::size_t holders) {
    testing::MemoryStore store("fencing");
    ClientOptions options;
    options.log = log_.sink();
    auto client = Client::connect("memory:fencing", options);
    std::vector<Lock> locks;
    std::vector<std::uint64_t> tokens;
    for (std::size_t i = 0; i < holders; ++i) {
      EXPECT_EQ(store.remove_holder("orders/7"), i > 0);
      locks.push_back(client.mutex("orders/7").acquire());
      tokens.push_back(locks.back().token());
    }
    EXPECT_FALSE(locks.front().valid());
    EXPECT_TRUE(locks.back().valid());
    return tokens;
  }

  // Tries every order in which the statements of the sellers can reach the database.
  Tally try_all_orders(const Statements& statements, std::size_t holders) {
    const auto tokens = grant(holders);
    std::string steps;
    for (std::size_t i = 0; i < holders; ++i) {
      steps += std::string(statements.size(), static_cast<char>('0' + i));
    }
    Tally tally;
    do {
      Orders orders;
      std::vector<Seller> sellers;
      for (const auto token : tokens) sellers.emplace_back(statements, token);
      for (const char who : steps) sellers[static_cast<std::size_t>(who - '0')].step(orders);
      const auto sales = std::count_if(sellers.begin(), sellers.end(),
                                       [](const Seller& seller) { return seller.sold(); });
      const bool lost = orders.items() != kStock - sales;
      const bool stopped = sellers.back().refused();
      if ((lost || stopped) && tally.first_bad.empty()) tally.first_bad = steps;
      ++tally.orders_of_steps;
      tally.lost_updates += lost ? 1 : 0;
      tally.newest_refused += stopped ? 1 : 0;
    } while (std::next_permutation(steps.begin(), steps.end()));
    return tally;
  }

  test::LogCapture log_;
};

TEST_F(Fencing, TokenCheckedAtTheWriteAloneLosesAnUpdate) {
  const auto tokens = grant(2);
  Orders orders;
  Seller paused(kCheckAtTheWrite, tokens[0]);
  Seller newest(kCheckAtTheWrite, tokens[1]);
  paused.step(orders);  // reads 10, and is paused
  newest.step(orders);  // reads 10
  paused.step(orders);  // wakes up and writes 9: no greater token is recorded yet
  newest.step(orders);  // writes 9
  EXPECT_TRUE(paused.sold());
  EXPECT_TRUE(newest.sold());
  EXPECT_EQ(orders.items(), kStock - 1) << "two sales, and one of them is lost";
  EXPECT_GT(try_all_orders(kCheckAtTheWrite, 2).lost_updates, 0);
}

// The same pauses, with the statements of the page.
TEST_F(Fencing, TokenRecordedBeforeTheReadRefusesThePausedHolder) {
  const auto statements = documented();
  ASSERT_EQ(statements.size(), 3u) << "record the token, read, write";
  const auto tokens = grant(2);
  Orders orders;
  Seller paused(statements, tokens[0]);
  Seller newest(statements, tokens[1]);
  paused.step(orders);  // records its token
  paused.step(orders);  // reads 10, and is paused
  newest.step(orders);  // records its token
  newest.step(orders);  // reads 10
  paused.step(orders);  // wakes up and wants to write 9
  newest.step(orders);  // writes 9
  EXPECT_TRUE(paused.refused());
  EXPECT_TRUE(newest.sold());
  EXPECT_EQ(orders.items(), kStock - 1);
  EXPECT_EQ(orders.fence(), static_cast<std::int64_t>(tokens[1]));
}

TEST_F(Fencing, AdviceOfThePageLosesNoUpdateInAnyOrder) {
  const auto statements = documented();
  ASSERT_FALSE(statements.empty()) << "docs/guarantees.md has no SQL block";
  for (const std::size_t holders : {2u, 3u}) {
    const auto tally = try_all_orders(statements, holders);
    EXPECT_EQ(tally.lost_updates, 0) << "of " << tally.orders_of_steps << " orders of " << holders
                                     << " holders, first " << tally.first_bad;
    EXPECT_EQ(tally.newest_refused, 0) << "of " << tally.orders_of_steps << " orders of " << holders
                                       << " holders, first " << tally.first_bad;
  }
}

TEST_F(Fencing, TokenRecordedAfterTheReadLosesAnUpdate) {
  auto statements = documented();
  ASSERT_EQ(statements.size(), 3u);
  std::swap(statements[0], statements[1]);
  EXPECT_GT(try_all_orders(statements, 2).lost_updates, 0);
}

// The write requires exactly its own token. A program that forgets to record its token is refused
// before it can lose an update.
TEST_F(Fencing, WriteWithoutARecordedTokenIsRefused) {
  auto statements = documented();
  ASSERT_EQ(statements.size(), 3u);
  statements.erase(statements.begin());
  const auto tally = try_all_orders(statements, 2);
  EXPECT_EQ(tally.newest_refused, tally.orders_of_steps);
  EXPECT_EQ(tally.lost_updates, 0);
}

TEST_F(Fencing, TableRefusesWhatItDoesNotKnow) {
  Orders orders;
  Bindings bound{5, 0};
  EXPECT_THROW(orders.run("DELETE FROM orders", bound), std::invalid_argument);
  EXPECT_EQ(statements_of("x;\n```sql\n-- why\na;\n\nb;  -- c\n```\nd;\n"), (Statements{"a", "b"}));
}

}  // namespace
}  // namespace baton

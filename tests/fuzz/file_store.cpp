// Fuzzes the file store: two clients use three locks in a directory that the fuzzer made. With any
// content of the directory, the clients do not crash or hang, two clients never hold one lock at
// the same time, and tokens increase or the store returns an error.
#include <baton/error.h>

#include "common/recipe/queue_rule.h"
#include "file_world.h"
#include "support/temp_dir.h"

#include <filesystem>

namespace baton::fuzz {
namespace {

constexpr const char* kLocks[] = {"a", "a/b", "z"};  // the fuzzer makes no files for lock "z"

struct OurTicket {
  std::size_t client;
  std::string lock;
  std::uint64_t nonce;
  std::uint64_t token;
  bool evicted = false;
};

class World {
 public:
  World(const std::string& directory, Input& in)
      : directory_(directory), in_(in), ruins_(directory, in) {}

  void run() {
    open(0);
    open(1);
    for (int steps = 0; steps < 40 && !in_.empty(); ++steps) {
      step();
      for (const char* lock : kLocks) check(lock);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (clients_[i] && in_.flag()) clients_[i]->close();
    }
  }

 private:
  void open(std::size_t i) {
    try {
      clients_[i].emplace(directory_);
    } catch (const Error& error) {
      // A damaged store is refused, and the error has a message.
      FUZZ_REQUIRE(error.what()[0] != '\0');
    }
  }

  void step() {
    const std::uint8_t what = in_.byte();
    const std::size_t who = (what >> 4) & 1;
    const std::string lock = kLocks[(what >> 5) % 3];
    if (!clients_[who]) {
      open(who);
      return;
    }
    FileClient& client = *clients_[who];
    switch (what & 15) {
      case 0:
        client.crash();
        forget(who);
        return;
      case 1:
        client.close();
        forget(who);
        return;
      case 2:
        check_names(client.list(in_.flag() ? "a/" : ""));
        return;
      case 3:
        evict(client, lock);
        return;
      case 4:  // enough tickets to fill a queue file
        for (int n = 0; n < 70; ++n) {
          if (!join(who, lock)) return;
          leave(tickets_.size() - 1);
        }
        return;
      case 5:
      case 6:
      case 7:
      case 8:
        for (std::size_t i = 0; i < tickets_.size(); ++i) {
          if (tickets_[i].client != who || tickets_[i].lock != lock) continue;
          leave(i);
          return;
        }
        return;
      default:
        if (tickets_.size() < 12) join(who, lock);
        return;
    }
  }

  bool join(std::size_t who, const std::string& lock) {
    const std::uint64_t nonce = next_nonce_++;
    const auto standing = clients_[who]->join(lock, nonce);
    if (!standing) {
      FUZZ_REQUIRE(standing.error().what()[0] != '\0');
      return false;
    }
    // A new ticket has a token above every earlier token of this lock.
    FUZZ_REQUIRE(standing->token > newest_[lock], std::to_string(standing->token));
    FUZZ_REQUIRE(standing->token < std::uint64_t{1} << 63);
    if (lock == "z") FUZZ_REQUIRE(standing->token >= ruins_.counted());
    newest_[lock] = standing->token;
    tickets_.push_back({who, lock, nonce, standing->token});
    return true;
  }

  void leave(std::size_t i) {
    const auto ticket = tickets_[i];
    tickets_.erase(tickets_.begin() + static_cast<std::ptrdiff_t>(i));
    const auto gone = clients_[ticket.client]->withdraw(ticket.lock, ticket.nonce);
    FUZZ_REQUIRE(gone.has_value());  // withdraw needs no resource that may be unavailable
    const auto after = clients_[ticket.client]->look(ticket.lock, ticket.nonce);
    FUZZ_REQUIRE(!after || after->view.tickets.empty());
  }

  void check_names(const Result<std::vector<std::string>>& names) {
    if (!names) return;
    for (const auto& ticket : tickets_) {
      const auto& all = *names;
      if (ticket.evicted || ticket.lock != "a/b") continue;
      FUZZ_REQUIRE(std::count(all.begin(), all.end(), ticket.lock) == 1);
    }
  }

  void evict(FileClient& client, const std::string& lock) {
    const auto line = client.inspect(lock);
    if (!line || line->entries.empty()) return;
    const auto& entry = line->entries[in_.byte() % line->entries.size()];
    const auto done = client.evict(lock, entry.id);
    if (!done || !*done) return;
    for (auto& ticket : tickets_) {
      ticket.evicted = ticket.evicted || (ticket.lock == lock && ticket.token == entry.token);
    }
  }

  void forget(std::size_t who) {
    clients_[who].reset();
    std::erase_if(tickets_, [&](const OurTicket& ticket) { return ticket.client == who; });
  }

  void check(const std::string& lock) {
    std::size_t holders = 0;
    for (const auto& ticket : tickets_) {
      if (ticket.lock != lock) continue;
      FileClient& client = *clients_[ticket.client];
      const auto standing = client.look(lock, ticket.nonce);
      if (!standing) continue;
      const auto judged = internal::judge(standing->view, Nonce{ticket.nonce});
      const bool missing = judged.verdict == internal::Verdict::missing;
      FUZZ_REQUIRE(missing == ticket.evicted);  // only eviction removes a ticket
      if (missing) continue;
      FUZZ_REQUIRE(standing->token == ticket.token);
      FUZZ_REQUIRE(standing->sign && !standing->sign->evicted());
      if (judged.verdict == internal::Verdict::holder) {
        ++holders;
        check_holder(client, ticket);
      } else {
        FUZZ_REQUIRE(judged.predecessor && judged.predecessor->rank < ticket.token);
      }
    }
    FUZZ_REQUIRE(holders <= 1, lock);
  }

  // Every client must see the holder's ticket as the first of the queue.
  void check_holder(FileClient& client, const OurTicket& ticket) {
    const auto first = client.verify(ticket.lock, ticket.nonce);
    FUZZ_REQUIRE(!first || *first);
    const auto busy = client.peek(ticket.lock);
    FUZZ_REQUIRE(!busy || *busy);
    FUZZ_REQUIRE(ticket.token >= granted_[ticket.lock]);
    granted_[ticket.lock] = ticket.token;
    for (auto& other : clients_) {
      if (!other) continue;
      const auto line = other->inspect(ticket.lock);
      if (!line) continue;
      FUZZ_REQUIRE(!line->entries.empty() && line->entries[0].token == ticket.token, ticket.lock);
    }
  }

  const std::string directory_;
  Input& in_;
  FileRuins ruins_;
  std::optional<FileClient> clients_[2];
  std::vector<OurTicket> tickets_;
  std::uint64_t next_nonce_ = 1;
  std::map<std::string, std::uint64_t> newest_;
  std::map<std::string, std::uint64_t> granted_;
};

}  // namespace
}  // namespace baton::fuzz

FUZZ_TARGET(file_store) {
  static const baton::test::TempDir scratch;
  const std::string directory = scratch / "store";
  {
    baton::fuzz::Input in(input);
    baton::fuzz::World(directory, in).run();
  }
  std::filesystem::remove_all(directory);
}

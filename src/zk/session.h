// ZkSession: the seam over one ZooKeeper session. Every ticket is an ephemeral, numbered node in
// the directory of its lock.
#pragma once

#include "common/seam/session.h"
#include "zk/errand.h"
#include "zk/heartbeat.h"
#include "zk/lister.h"
#include "zk/outbox.h"
#include "zk/watches.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::internal {

struct ZkSessionParts {
  Loop* loop;
  // A new line; also for further sessions that only watch.
  std::function<std::unique_ptr<ZkLine>(ZkLineListener&)> make_line;
  std::string root;       // "" or "/app"
  std::string client_id;  // what our entries begin with
  std::string label;
  bool permanent_parents = false;
  std::size_t watch_budget = ZkWatches::kBudget;
  std::chrono::milliseconds patience{60'000};  // of callers that do not say how long they wait
  // Without a root, list() meets the trees of everything else that uses the ensemble. So many
  // directories without an entry are read, and no more.
  std::size_t most_strange = 10'000;
  std::function<void(LogLevel, std::string_view)> log;
};

class ZkSession final : public Session, private ZkLineListener {
 public:
  // opened: once, with this session ready for use, or with why it cannot be. Not inside the call.
  ZkSession(ZkSessionParts parts, SessionListener& listener, Answer<Done> opened);
  ~ZkSession() override;

  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override;
  void look(const LockName& name, Nonce nonce, Answer<Standing> answer) override;
  void peek(const LockName& name, Answer<bool> busy) override;
  WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                WatchHandler handler) override;
  void unwatch(WatchId id) override;
  void withdraw(const LockName& name, Nonce nonce, Answer<Done> answer) override;
  void verify(const LockName& name, Nonce nonce, Answer<bool> answer) override;
  void inspect(const LockName& name, Answer<LockSnapshot> answer) override;
  void list(std::string_view prefix, Answer<std::vector<std::string>> answer) override;
  void evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) override;
  void settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) override;
  void close(Answer<Done> answer) override;
  std::shared_ptr<LeaseView> lease() const override { return lease_; }
  SessionInfo info() const override;
  std::chrono::milliseconds backstop() const override;

 private:
  struct JoinTry;
  // A ticket of ours, from the first request about it until it is gone for sure.
  struct Place {
    enum class State {
      joining,   // the create is on its way
      in_doubt,  // its answer was lost
      there,
    };
    Place(LockName lock, Nonce ours, std::string entry)
        : name(std::move(lock)), nonce(ours), id(std::move(entry)) {}
    const LockName name;
    const Nonce nonce;
    const std::string id;
    State state = State::joining;
    std::string node;  // the child's name, once known
    std::int64_t sequence = 0;
    std::uint64_t token = 0;
    std::uint64_t create_request = 0;
    bool withdrawn = false;
    bool removal_in_doubt = false;   // the answer to a removal was lost
    std::vector<Answer<Done>> gone;  // asked for while the create was on its way
    std::weak_ptr<JoinTry> attempt;
  };
  using PlacePtr = std::shared_ptr<Place>;
  struct Walk;
  class SideLine;

  // session.cpp
  void create(const PlacePtr& place, int tries, Answer<Standing> answer);
  void created(const std::shared_ptr<JoinTry>& attempt, const ZkListing& listing);
  void make_parents(const PlacePtr& place, int tries, Answer<Standing> answer);
  void find(const PlacePtr& place, Answer<std::string> node);  // "": it is not there
  void adopt(const PlacePtr& place, const std::string& node, Answer<Standing> answer);
  void remove(const PlacePtr& place, Answer<Done> answer);
  void forget(const PlacePtr& place);
  Result<Standing> standing(const PlacePtr& place, const ZkListing& listing) const;
  std::string directory(const LockName& name) const;
  std::string path(const LockName& name, std::string_view node) const;

  // session_line.cpp: the line, the lease, side lines
  void line_connected(const ZkConnection& connection) override;
  void line_disconnected() override;
  void line_ended(ZkStatus why, const std::string& detail) override;
  void line_news(ZkNews news, const std::string& path) override;
  void renewed();
  void over(Errc reason, const std::string& detail);
  void say_goodbye();
  void watch_apart();
  void again(Task task);  // after an answer was lost
  ZkOutbox* more_room();

  // token_base.cpp
  void record_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer);

  // session_admin.cpp
  // What one caller has asked. Q: one of these, with the answer.
  struct Question {
    std::weak_ptr<ZkErrand> errand;  // gone: it is answered
    void ask(ZkRequest request, ZkOutbox::Answer to);
  };
  struct Reading;
  struct Eviction;
  struct Proof;
  template <class Q>
  void begin(const std::shared_ptr<Q>& question, const std::string& what);
  template <class Q, class T>
  void settle(const std::shared_ptr<Q>& question, T result);
  template <class Q>
  void repeat(const std::shared_ptr<Q>& question,
              void (ZkSession::*step)(const std::shared_ptr<Q>&));
  void read_line(const std::shared_ptr<Reading>& reading);
  void read_entries(const std::shared_ptr<Reading>& reading);
  void try_evict(const std::shared_ptr<Eviction>& eviction);
  void prove(const std::shared_ptr<Proof>& proof);
  void walk_from_root(const std::shared_ptr<Walk>& walk);
  void walk_on(const std::shared_ptr<Walk>& walk);
  void walk_into(const std::shared_ptr<Walk>& walk, const std::string& name);

  const ZkSessionParts parts_;
  Time apart_;  // no server had heard of us then, or not since the last disconnect
  std::optional<Time> apart_candidate_;  // it seemed so, but wait
  TimerId apart_timer_ = TimerId::none;
  Time disconnected_at_{};
  SessionListener& listener_;
  Answer<Done> opened_;
  std::shared_ptr<LeaseView> lease_;
  ZkConnection connection_;
  bool permanent_parents_ = false;
  bool connected_ = false;
  bool ended_ = false;
  bool closing_ = false;
  Time side_line_ended_{};  // the last time one did
  std::set<TimerId> retries_;
  Answer<Done> closed_;  // closing, and waiting for a connection to say so
  TimerId closing_timer_ = TimerId::none;
  std::unique_ptr<ZkLine> line_;
  std::unique_ptr<ZkHeartbeat> heartbeat_;  // from the first connection on
  ZkOutbox outbox_;
  ZkLister lister_;
  ZkWatches watches_;
  std::vector<std::unique_ptr<SideLine>> side_lines_;
  std::unordered_map<Nonce, PlacePtr> places_;
  std::set<std::shared_ptr<ZkErrand>> errands_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::internal

// Leases: the leases of one session, and the keepalives that carry its deadline.
#pragma once

#include "common/base/clock.h"
#include "common/base/jitter.h"
#include "common/seam/lease.h"
#include "common/base/loop.h"
#include "common/seam/session.h"
#include "etcd/link.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace baton::etcd {

// Told on the strand, never inside a call to the leases (but for the first key of a lease).
class LeasesListener {
 public:
  virtual ~LeasesListener() = default;
  virtual void leases_renewed() = 0;                        // deadline() has moved
  virtual void leases_lost(const std::string& detail) = 0;  // one of them is over: all is
  virtual void lease_revoked(std::int64_t lease) = 0;       // one that was retired, by us
};

// A few leases, so that none has too many keys: what a put costs a server grows with the keys of
// its lease. All are kept alive together, and the session lives as long as the first of them to
// end.
class Leases final : private StreamListener {
 public:
  static constexpr std::size_t kMostKeys = 1000;
  static constexpr std::size_t kMostLeases = 16;

  Leases(Loop& loop, Link& link, std::chrono::milliseconds wanted, LeasesListener& listener);
  ~Leases() override;

  // A lease with room, granted first if there is none. Answers inside the call if it is there.
  void with_room(Answer<std::int64_t> answer);
  void key_added(std::int64_t lease);
  void key_gone(std::int64_t lease);
  // No new keys: a transaction that was given up may still land under it. Revoked once its last key
  // is gone; then nothing can land any more.
  void retire(std::int64_t lease);
  // Revokes all. Done: the store has forgotten them.
  void revoke_all(Answer<Done> answer);

  std::vector<std::int64_t> all() const;
  std::chrono::milliseconds ttl() const noexcept { return ttl_; }  // as granted
  // Of all leases that are used, the earliest. The epoch: there is none.
  Time deadline() const;
  Time suspect_at() const noexcept;

 private:
  struct Lease {
    std::chrono::milliseconds ttl{};
    Time deadline{};
    Time sent{};  // of the keepalive that is not answered yet
    bool waiting = false;
    // Half of its time is over, since it was asked for or renewed, and it has no keys: it gets none
    // before a keepalive was answered.
    bool stale = false;
    std::size_t keys = 0;
    bool retired = false;
    bool revoking = false;
    // Nobody misses it: that it is over is as it should be.
    bool unwanted() const noexcept { return revoking || (retired && keys == 0); }
  };

  void renew_unused();
  void grant();
  void granted(Reply<etcdpb::LeaseGrantResponse>& reply);
  void revoke(std::int64_t id);
  void drop_idle();

  void stream_message(const Message& message) override;
  void stream_ended(const CallResult& why) override;
  enum class Token { required, optional };
  void beat(Token token = Token::required);  // a keepalive for each, on a stream with a token
  void await_token();
  void drop_stream();
  void renew(std::int64_t id);
  void serve_waiting();
  void beat_late();     // not all were answered in time
  void beat_settled();  // unless somebody still waits: the next one in due time
  void forget(std::int64_t id);
  void reopen_soon();
  void schedule();
  void fail_waiting(const Error& error);

  Loop& loop_;
  Link& link_;
  const std::chrono::milliseconds wanted_;
  LeasesListener& listener_;
  std::map<std::int64_t, Lease> leases_;
  std::chrono::milliseconds ttl_{};
  bool granting_ = false;
  bool closing_ = false;
  std::vector<Answer<std::int64_t>> waiting_;
  std::unique_ptr<Stream> stream_;
  std::size_t endpoint_ = 0;
  std::string token_;  // that the stream was opened with
  int failures_ = 0;
  int refusals_ = 0;  // because of the token, or of permissions; since a keepalive was answered
  Time last_sent_{};  // of the newest keepalive that was answered
  TimerId beat_timer_ = TimerId::none;
  TimerId late_timer_ = TimerId::none;
  Time late_at_{};
  TimerId token_timer_ = TimerId::none;  // a beat waits for a token, at most until then
  std::minstd_rand random_{jitter_seed()};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::etcd

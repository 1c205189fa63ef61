// Leases: grants, renews and revokes the leases of one session, and computes the session's
// deadline.
#pragma once

#include "common/base/clock.h"
#include "common/base/jitter.h"
#include "common/base/lifetime.h"
#include "common/seam/lease.h"
#include "common/base/loop.h"
#include "common/seam/session.h"
#include "etcd/beat_state.h"
#include "etcd/lease_state.h"
#include "etcd/link.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace baton::etcd {

// Called on the strand, and never inside a call to Leases, with one exception: key_added() calls
// leases_renewed() for the first key of a lease.
class LeasesListener {
 public:
  virtual ~LeasesListener() = default;
  virtual void leases_renewed() = 0;                        // deadline() has changed
  virtual void leases_lost(const std::string& detail) = 0;  // a lease ended: the session is over
  virtual void lease_revoked(std::int64_t lease) = 0;       // a retired lease was revoked
};

// A session uses several leases because the cost of a put on the server grows with the number of
// keys of its lease. All leases are renewed together. The session ends when the first lease ends.
class Leases final : private StreamListener {
 public:
  static constexpr std::size_t kMostKeys = 1000;
  static constexpr std::size_t kMostLeases = 16;

  Leases(Loop& loop, Link& link, std::chrono::milliseconds wanted, LeasesListener& listener);
  ~Leases() override;

  // Answers with a lease that has room for a key. Answers inside the call if there is one;
  // otherwise after a lease was granted or renewed.
  void reserve_slot(Answer<std::int64_t> answer);
  void key_added(std::int64_t lease);
  void key_gone(std::int64_t lease);
  // Adds no further keys to this lease, because an abandoned transaction may still put a key under
  // it. The lease is revoked when its last key is gone. After that no transaction can put a key
  // under it.
  void retire(std::int64_t lease);
  // Revokes all leases. Done: the store has ended them, or has refused the revocation with an error
  // that is not transient.
  void revoke_all(Answer<Done> answer);

  std::vector<std::int64_t> all() const;
  std::chrono::milliseconds ttl() const noexcept { return ttl_; }  // as the server granted it
  // The earliest deadline of all leases with keys; if no lease has keys, of all leases. Time{} if
  // there is no lease.
  Time deadline() const;
  Time suspect_at() const noexcept;

 private:
  class Lease {
   public:
    LeaseState state() const noexcept { return state_; }
    // An event that cannot happen changes nothing.
    void on(LeaseEvent event) noexcept { state_ = next_state(state_, event).value_or(state_); }

    std::chrono::milliseconds ttl{};
    Time deadline{};
    std::optional<Time> unanswered_since;  // when the unanswered keepalive was sent
    std::size_t keys = 0;

   private:
    LeaseState state_ = LeaseState::active;
  };

  void renew_unused();
  void grant();
  void granted(Reply<etcdpb::LeaseGrantResponse>& reply);
  void revoke_unneeded(std::int64_t id);
  void drop_idle();

  void stream_message(const Message& message) override;
  void stream_ended(const CallResult& why) override;
  enum class Token { required, optional };
  void beat(Token token = Token::required);  // sends a keepalive for each lease
  void await_token();
  void drop_stream();
  void renew(std::int64_t id);
  void serve_waiting();
  void beat_late();     // a keepalive was not answered in time
  void beat_settled();  // if all keepalives are answered, schedules the next beat
  void forget(std::int64_t id);
  void reopen_soon();
  void plan_beat(Time when);
  // An event that cannot happen changes nothing.
  void on(BeatEvent event) noexcept { beats_ = next_state(beats_, event).value_or(beats_); }
  void fail_waiting(const Error& error);

  Loop& loop_;
  Link& link_;
  const std::chrono::milliseconds wanted_;
  LeasesListener& listener_;
  std::map<std::int64_t, Lease> leases_;
  std::chrono::milliseconds ttl_{};
  bool granting_ = false;
  std::vector<Answer<std::int64_t>> waiting_;
  std::unique_ptr<Stream> stream_;
  std::size_t endpoint_ = 0;
  std::string token_;  // the token with which the stream was opened
  int failures_ = 0;
  int refusals_ = 0;  // for authentication or permission, since the last answer
  Time last_sent_{};  // when the newest answered keepalive was sent
  BeatState beats_ = BeatState::idle;
  TimerId beat_timer_ = TimerId::none;  // scheduled, renewing
  TimerId late_timer_ = TimerId::none;  // renewing, beating
  Time late_at_{};
  TimerId token_timer_ = TimerId::none;  // awaiting_token: limits how long a beat waits for a token
  std::minstd_rand random_{jitter_seed()};
  Lifetime lifetime_;
};

}  // namespace baton::etcd

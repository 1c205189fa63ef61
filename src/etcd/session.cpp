#include "etcd/session.h"

#include "etcd/path.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

using std::chrono::milliseconds;

Session::Session(SessionParts parts, SessionListener& listener, Answer<Done> opened)
    : parts_(std::move(parts)),
      listener_(listener),
      opened_(std::move(opened)),
      lease_(std::make_shared<LeaseView>(Time{}, Time{})),
      retries_(*parts_.link.loop),
      link_(parts_.link, *this),
      leases_(*parts_.link.loop, link_, parts_.session_timeout, *this),
      watches_(*parts_.link.loop, link_),
      sequencer_(*parts_.link.loop),
      tickets_(leases_),
      stray_keys_(context_, leases_, watches_, tickets_),
      reader_(context_, tickets_, sequencer_, watches_),
      operator_calls_(context_, tickets_, sequencer_, reader_),
      key_loss_(context_, watches_, tickets_,
                [this](const std::string& detail) { leases_lost(detail); }),
      key_life_(context_, tickets_, sequencer_, leases_, watches_, reader_, stray_keys_,
                [this](const std::string& detail) { leases_lost(detail); }) {
  loop().defer(lifetime_.guard([this] { begin(); }));
}

Session::~Session() {
  lifetime_.end();
  lease_->end();
}

// ---- opening

void Session::begin() {
  // Requests the server version (for operators) and the first lease at the same time.
  const auto answered = std::make_shared<int>(0);
  const auto done = [this, answered] {
    if (++*answered != 2 || ended_ || closing_) return;
    ready_ = true;
    stray_keys_.start();
    opened_(Done{});
  };
  RequestOptions how;
  how.linearizable = false;
  how.bypass_limit = true;
  link_.ask<etcdpb::StatusResponse>(
      Call::status, etcdpb::StatusRequest{}, how,
      lifetime_.guard([this, done](Reply<etcdpb::StatusResponse>& reply) {
        if (reply.ok()) version_ = reply.body.version();
        done();
      }));
  leases_.reserve_slot(lifetime_.guard([this, done](const Result<std::int64_t>& lease) {
    if (ended_ || closing_) return;
    if (lease) {
      done();
      return;
    }
    // The caller that opened the session decides how long it retries.
    retries_.later([this] { begin(); });
    opened_(lease.error());
  }));
}

SessionInfo Session::info() const {
  SessionInfo info;
  info.backend = "etcd";
  info.endpoint = link_.endpoint();
  info.timeout = leases_.ttl();
  info.server_version = version_;
  info.state = ended_         ? SessionState::closed
               : link_.down() ? SessionState::suspect
                              : SessionState::connected;
  return info;
}

milliseconds Session::backstop() const {
  return std::clamp(leases_.ttl() / 2, milliseconds(1'000), milliseconds(30'000));
}

WatchId Session::watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                       WatchHandler handler) {
  Watches::Want want;
  const std::string where = context_.prefix(name);
  const auto id = parse_entry_id(ticket.id);
  want.key = where + (id ? id->suffix : ticket.id);
  want.created = static_cast<std::int64_t>(ticket.rank);
  if (ticket.ours) return key_loss_.watch(std::move(want), *ticket.ours, std::move(handler));
  return reader_.watch(std::move(want), what.waiter, std::move(handler));
}

// ---- the lease

void Session::leases_renewed() {
  const Time deadline = leases_.deadline();
  if (ended_ || closing_ || deadline == Time{}) return;
  const Time now = loop().now();
  if (now < lease_->deadline()) {
    lease_->extend(leases_.suspect_at(), deadline);
  } else if (deadline > now) {
    // The lease expired by our clock, but not in the store: start a new LeaseView. Holds under the
    // old one are lost; waiters keep their tickets.
    lease_->end();
    lease_ = std::make_shared<LeaseView>(leases_.suspect_at(), deadline);
  }
}

void Session::leases_lost(const std::string& detail) { end_session(Errc::session_expired, detail); }

void Session::lease_revoked(std::int64_t lease) {
  stray_keys_.lease_revoked(lease);
  tickets_.lease_revoked(lease);
}

void Session::link_left(std::size_t endpoint) { watches_.leave(endpoint); }

void Session::link_back() {
  if (ready_ && !ended_ && !closing_) listener_.session_resumed();
}

void Session::link_store_changed(const std::string& detail) {
  end_session(Errc::store_changed, detail);
}

void Session::end_session(Errc reason, const std::string& detail) {
  if (std::exchange(ended_, true)) return;
  sequencer_.close();
  lease_->end(reason == Errc::store_changed ? reason : Errc::session_expired);
  if (closing_) return;
  // The keys of the other leases would block all waiters until these leases expire: revoke them
  // now.
  for (const std::int64_t lease : leases_.all()) {
    etcdpb::LeaseRevokeRequest request;
    request.set_id(lease);
    RequestOptions how;
    how.bypass_limit = true;
    link_.ask<etcdpb::LeaseRevokeResponse>(Call::lease_revoke, request, how, [](auto&) {});
  }
  if (ready_) {
    listener_.session_ended(reason, detail);
  } else {
    opened_(Error(Errc::connection_failed, detail));
  }
}

void Session::close(Answer<Done> answer) {
  closing_ = true;
  stray_keys_.stop();
  leases_.revoke_all(std::move(answer));
}

}  // namespace baton::etcd

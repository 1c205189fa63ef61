#include "zk/heartbeat.h"

#include "common/base/mutant.h"

#include <algorithm>
#include <utility>

namespace baton::zk {

Heartbeat::Heartbeat(Loop& loop, Transport& transport, std::chrono::milliseconds timeout, Time born,
                     Task renewed)
    : loop_(loop),
      transport_(transport),
      interval_(std::chrono::duration_cast<Nanos>(HeartbeatLease::interval(timeout))),
      renewed_(std::move(renewed)),
      lease_(timeout, born) {}

Heartbeat::~Heartbeat() {
  lifetime_.end();
  loop_.cancel(timer_);
}

void Heartbeat::connected(Time apart) {
  open_ = true;
  ++connection_;
  lease_.reconnected(apart);
  under_way_ = false;  // a heartbeat of the old connection is lost
  write_next_ = active_;
  beat();
}

void Heartbeat::disconnected() {
  open_ = false;
  loop_.cancel(timer_);
}

Time Heartbeat::suspect_at() const noexcept {
  return last_answered_ + 2 * interval_ + interval_ / 2;
}

bool Heartbeat::write_is_old() const noexcept {
  // While the heartbeat is active, writes are two intervals apart.
  return loop_.now() >= last_write_ + 2 * interval_ + interval_ / 2;
}

void Heartbeat::set_active(bool active) {
  if (std::exchange(active_, active) == active || !active || !write_is_old()) return;
  write_next_ = true;
  beat();
}

void Heartbeat::schedule(Time when) {
  loop_.cancel(timer_);
  timer_ = loop_.at(when, [this] { beat(); });
}

void Heartbeat::beat() {
  if (!open_ || under_way_) return;
  const bool write = active_ && write_next_;
  write_next_ = !write;
  under_way_ = true;
  loop_.cancel(timer_);
  const Time sent = loop_.now();
  last_sent_ = sent;
  const Request request{
      write ? Request::Kind::remove : Request::Kind::sync, write ? kMissingNode : "/", {}};
  transport_.send(
      request, lifetime_.guard([this, connection = connection_, sent, write](const Reply& reply) {
        if (connection == connection_) answered(sent, write, reply);
      }));
}

void Heartbeat::answered(Time sent, bool write, const Reply& reply) {
  under_way_ = false;
  const bool counts = write ? is_missing_node_answer(reply.status) : reply.status == Status::ok;
  if (!counts) {
    // The heartbeat was refused or lost, and proves nothing. Retry after an interval. The transport
    // reports if the connection or the session is lost.
    if (write) write_next_ = true;
    schedule(loop_.now() + interval_);
    return;
  }
  lease_.answered(mutant(Mutant::deadline_from_answer) ? loop_.now() : sent, write, loop_.now());
  last_answered_ = sent;
  if (write) last_write_ = sent;
  // After an outage only a write can start a new lease.
  if (lease_.deadline() <= loop_.now()) write_next_ = true;
  if (active_ && write_next_ && write_is_old()) {
    beat();  // a lock was requested meanwhile, which needs a write
  } else {
    // The gap since the heartbeat before an outage makes this deadline early, perhaps earlier than
    // the next regular heartbeat. A second heartbeat soon closes the gap.
    const bool after_gap = active_ && lease_.gap() >= 2 * interval_ + interval_ / 2;
    schedule(std::max(loop_.now(), sent + (after_gap ? interval_ / 16 : interval_)));
  }
  renewed_();
}

}  // namespace baton::zk

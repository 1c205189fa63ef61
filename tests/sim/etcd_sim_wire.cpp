#include "etcd_sim_wire.h"

#include "bugs.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;
using etcd::Call;
using etcd::CallResult;
using etcd::Message;
using etcd::StreamKind;
namespace etcdpb = internal::etcdpb;

namespace {
std::shared_ptr<etcd::Message> copy(const etcd::Message& message) {
  std::shared_ptr<etcd::Message> made(message.New());
  made->CheckTypeAndMergeFrom(message);
  return made;
}

// ---- seeded bugs

etcdpb::ResponseHeader* header_of(Call kind, Message& response) {
  switch (kind) {
    case Call::range:
      return static_cast<etcdpb::RangeResponse&>(response).mutable_header();
    case Call::txn:
      return static_cast<etcdpb::TxnResponse&>(response).mutable_header();
    case Call::lease_grant:
      return static_cast<etcdpb::LeaseGrantResponse&>(response).mutable_header();
    case Call::lease_revoke:
      return static_cast<etcdpb::LeaseRevokeResponse&>(response).mutable_header();
    case Call::lease_time_to_live:
      return static_cast<etcdpb::LeaseTimeToLiveResponse&>(response).mutable_header();
    case Call::status:
      return static_cast<etcdpb::StatusResponse&>(response).mutable_header();
    case Call::authenticate:
      break;
  }
  return nullptr;
}

void seed_answer(Call kind, Message& response, bool set_back, std::int64_t newest_revision) {
  // The answers do not show that the store was set back.
  if (seeded(Bug::rollback_ignored) && set_back) {
    if (auto* const header = header_of(kind, response)) header->set_revision(newest_revision);
  }
  // The answers do not show the key of an abandoned transaction.
  if (seeded(Bug::stray_txn_stays) && kind == Call::lease_time_to_live) {
    static_cast<etcdpb::LeaseTimeToLiveResponse&>(response).clear_keys();
  }
}

// False: the client does not get the response.
bool seed_watch_response(etcdpb::WatchResponse& response) {
  if (seeded(Bug::refused_watch_waits) && response.canceled() &&
      !response.cancel_reason().empty()) {
    response.set_canceled(false);
    return response.watch_id() >= 0;
  }
  if (seeded(Bug::compaction_is_gone) && response.compact_revision() != 0) {
    response.set_canceled(false);
    auto& event = *response.add_events();
    event.set_type(etcdpb::Event::DELETE);
    event.mutable_kv()->set_mod_revision(response.header().revision());
  }
  if (seeded(Bug::stray_txn_stays)) {
    // Only the watches of abandoned transactions report puts.
    return response.events_size() == 0 || response.events(0).type() != etcdpb::Event::PUT;
  }
  return true;
}
}  // namespace

// ---- members

void EtcdMembers::at(std::size_t member, Task task) {
  if (all_[member].stopped) {
    all_[member].inbox.push_back(std::move(task));
  } else {
    task();
  }
}

void EtcdMembers::resume(std::size_t member) {
  all_[member].stopped = false;
  auto inbox = std::exchange(all_[member].inbox, {});
  for (auto& task : inbox) at(member, std::move(task));
}

// ---- calls

struct SimEtcdWire::Call {
  std::unique_ptr<etcd::Message> response;
  etcd::CallAnswer answer;
  bool done = false;
  internal::TimerId timer = internal::TimerId::none;
};

SimEtcdWire::SimEtcdWire(World& world, PortParts parts, etcd::FakeEtcd& etcd, EtcdMembers& members,
                         const Quirks& quirks, Nanos timeout)
    : world_(world),
      parts_(std::move(parts)),
      etcd_(etcd),
      members_(members),
      quirks_(quirks),
      timeout_(timeout) {}

SimEtcdWire::~SimEtcdWire() { *alive_ = false; }

void SimEtcdWire::finish(const std::shared_ptr<Call>& call, const etcd::CallResult& verdict) {
  if (std::exchange(call->done, true)) return;
  parts_.loop->cancel(call->timer);
  call->answer(verdict, *call->response);
  call->answer = nullptr;
}

void SimEtcdWire::ask(std::size_t endpoint, etcd::Call kind, const etcd::Message& request,
                      std::unique_ptr<etcd::Message> response, const etcd::CallOptions& options,
                      etcd::CallAnswer answer, Task* /*cancel*/) {
  const Weather& weather = *parts_.weather;
  auto call = std::make_shared<Call>();
  call->response = std::move(response);
  call->answer = std::move(answer);
  call->timer = parts_.loop->at(parts_.loop->now() + options.timeout, [this, call] {
    finish(call, {4, "Deadline Exceeded"});
  });
  const auto back = [this, alive = alive_, call](const etcd::CallResult& verdict,
                                                 const std::shared_ptr<etcd::Message>& served) {
    if (!*alive || !parts_.weather->down || world_.chance(parts_.weather->lose_answer)) return;
    world_.after(delay_in(world_, *parts_.weather), [this, alive, call, verdict, served] {
      if (!*alive) return;
      parts_.loop->arrive([this, alive, call, verdict, served] {
        if (!*alive || call->done) return;
        if (verdict.code == 0) call->response->CheckTypeAndMergeFrom(*served);
        finish(call, verdict);
      });
    });
  };
  if (members_.down(endpoint)) {
    back({14, "failed to connect to all addresses"}, nullptr);
    return;
  }
  if (!weather.up || world_.chance(weather.lose_request)) return;
  Nanos delay = delay_in(world_, weather);
  // The request arrives late, as if a slow member had forwarded it.
  const bool healed = weather.latest == Nanos{};
  if (!healed && quirks_.on(Quirk::etcd_late_txn) && kind == etcd::Call::txn &&
      world_.chance(0.02)) {
    delay = world_.span(options.timeout, timeout_ * 2);
  }
  const auto carry = [this, endpoint, kind, options, back, asked = copy(request),
                      empty = std::shared_ptr<etcd::Message>(call->response->New())](Nanos after) {
    world_.after(
        after, [etcd = &etcd_, members = &members_, endpoint, kind, options, back, asked, empty] {
          members->at(endpoint, [etcd, members, endpoint, kind, options, back, asked, empty] {
            if (members->down(endpoint)) return;
            const std::shared_ptr<etcd::Message> served(empty->New());
            const auto verdict = etcd->serve(endpoint, kind, *asked, *served, options);
            auto& newest = members->newest_revision;
            newest = std::max(newest, etcd->revision());
            if (verdict.code == 0) seed_answer(kind, *served, etcd->revision() < newest, newest);
            back(verdict, served);
          });
        });
  };
  carry(delay);
}

// ---- streams

class SimEtcdWire::SimStream final : public SimPipe, public etcd::FakeHearer {
 public:
  SimStream(SimEtcdWire& wire, std::size_t endpoint, etcd::StreamKind flow, std::string token,
            etcd::StreamListener& listener)
      : SimPipe(wire.world_, *wire.parts_.weather),
        world_(wire.world_),
        parts_(wire.parts_),
        etcd_(wire.etcd_),
        members_(wire.members_),
        listener_(&listener),
        endpoint_(endpoint),
        flow_(flow),
        token_(std::move(token)) {}
  // The cluster no longer knows a stream that is destroyed, because leave(), crash() or break_off()
  // has removed it.
  std::size_t endpoint() const { return endpoint_; }

  void send(const etcd::Message& message) {
    if (broken_) return;
    const Weather& weather = *parts_.weather;
    if (flow_ == etcd::StreamKind::keep_alive && world_.chance(weather.stop_after_beat))
      parts_.on_beat();
    if (world_.chance(weather.lose_request)) {
      break_off();
      return;
    }
    up([this, asked = copy(message)] {
      members_.at(endpoint_, [self = me(), asked] { self->reach(*asked); });
    });
  }
  void hear(const etcd::Message& response) override {
    if (broken_ || dropped) return;
    if (world_.chance(parts_.weather->lose_answer)) {
      break_off();
      return;
    }
    members_.newest_revision = std::max(members_.newest_revision, etcd_.revision());
    auto said = copy(response);
    if (flow_ == etcd::StreamKind::watch &&
        !seed_watch_response(static_cast<etcdpb::WatchResponse&>(*said))) {
      return;
    }
    down([this, said = std::move(said)] {
      parts_.loop->arrive([self = me(), said] {
        if (self->listener_ != nullptr) self->listener_->stream_message(*said);
      });
    });
  }
  // The client closes the stream.
  void leave() {
    listener_ = nullptr;
    dropped = true;
    forget_down();
    // Messages that were sent arrive first, then the end of the stream.
    up([this] { gone(); });
  }
  void crash() {
    listener_ = nullptr;
    broken_ = true;
    gone();
  }
  void break_off(const etcd::CallResult& why = {14, "connection reset"}) {
    if (std::exchange(broken_, true)) return;
    forget_up();
    forget_down();
    // Not at once, because the cluster may be sending an event to all its watches now.
    world_.after(world_.span(100us, 3ms), [self = me(), why] {
      self->gone();
      if (!self->parts_.life->alive) return;
      self->parts_.loop->arrive([self, why] {
        if (self->listener_ == nullptr) return;
        std::exchange(self->listener_, nullptr)->stream_ended(why);
      });
    });
  }

 private:
  std::shared_ptr<SimStream> me() {
    return std::static_pointer_cast<SimStream>(shared_from_this());
  }
  // Ends the stream for the member. The member does not read messages that arrive later.
  void gone() {
    gone_ = true;
    etcd_.stream_gone(this);
  }
  void reach(const etcd::Message& message) {
    if (gone_ || broken_ || members_.down(endpoint_)) return;
    if (flow_ == etcd::StreamKind::watch) {
      etcd_.watch(endpoint_, this, token_, static_cast<const etcdpb::WatchRequest&>(message));
      return;
    }
    if (const auto refused = etcd_.refuse_keep_alive(token_)) {
      break_off(*refused);
      return;
    }
    etcdpb::LeaseKeepAliveResponse response;
    const auto& request = static_cast<const etcdpb::LeaseKeepAliveRequest&>(message);
    if (etcd_.keep_alive(endpoint_, request, response)) hear(response);
  }

  World& world_;
  const PortParts parts_;
  etcd::FakeEtcd& etcd_;
  EtcdMembers& members_;
  etcd::StreamListener* listener_;
  const std::size_t endpoint_;
  const etcd::StreamKind flow_;
  const std::string token_;
  bool broken_ = false;
  bool gone_ = false;
};

class SimEtcdWire::Handle final : public etcd::Stream {
 public:
  Handle(std::shared_ptr<SimStream> stream, std::shared_ptr<Life> life)
      : stream_(std::move(stream)), life_(std::move(life)) {}
  ~Handle() override {
    if (life_->alive) {
      stream_->leave();
    } else {
      stream_->crash();
    }
  }
  void send(const etcd::Message& message) override { stream_->send(message); }

 private:
  const std::shared_ptr<SimStream> stream_;
  const std::shared_ptr<Life> life_;
};

std::unique_ptr<etcd::Stream> SimEtcdWire::open(std::size_t endpoint, etcd::StreamKind flow,
                                                const std::string& token,
                                                etcd::StreamListener& listener) {
  auto stream = std::make_shared<SimStream>(*this, endpoint, flow, token, listener);
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
  if (members_.down(endpoint)) stream->break_off();
  return std::make_unique<Handle>(std::move(stream), parts_.life);
}

void SimEtcdWire::break_streams(std::size_t member) {
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (stream && stream->endpoint() == member) stream->break_off();
  }
}

}  // namespace baton::sim

#include "fake_etcd_wire.h"

#include <algorithm>

namespace baton::etcd {

using std::chrono::milliseconds;

namespace {
std::shared_ptr<Message> copy(const Message& message) {
  std::shared_ptr<Message> made(message.New());
  made->CheckTypeAndMergeFrom(message);
  return made;
}
}  // namespace

// ---- calls

struct FakeEtcdWire::PendingCall {
  FakeAsked asked;
  std::unique_ptr<Message> response;
  CallAnswer answer;
  bool done = false;
};

void FakeEtcdWire::ask(std::size_t endpoint, Call kind, const Message& request,
                       std::unique_ptr<Message> response, const CallOptions& options,
                       CallAnswer answer, Task* cancel) {
  auto call = std::make_shared<PendingCall>();
  call->asked = {endpoint, kind, copy(request), options, loop().now()};
  call->response = std::move(response);
  call->answer = std::move(answer);
  log_.push_back(call->asked);
  if (cancel != nullptr) {
    *cancel = [this, alive = alive_, weak = std::weak_ptr(call)] {
      loop().defer([this, alive, call = weak.lock()] {
        if (*alive && call != nullptr) finish(call, {1, "CANCELLED"});
      });
    };
  }
  most_under_way_ = std::max(most_under_way_, ++under_way_);
  const FakeFate what = fate ? fate(call->asked) : FakeFate{};
  const Time now = loop().now();
  loop().at(now + options.timeout, [this, alive = alive_, call] {
    if (!*alive) return;
    if (timers_stand) {
      endless_.push_back(call);
    } else {
      finish(call, {4, "Deadline Exceeded"});
    }
  });
  if (paths_[endpoint].down) {
    loop().at(now + milliseconds(1), [this, alive = alive_, call] {
      if (*alive) finish(call, {14, "failed to connect to all addresses"});
    });
    return;
  }
  if (!what.arrives || paths_[endpoint].renewed < paths_[endpoint].dead) return;
  loop().at(now + what.there, [this, alive = alive_, call, what] {
    if (*alive) arrive(call, what);
  });
}

void FakeEtcdWire::arrive(const std::shared_ptr<PendingCall>& call, const FakeFate& what) {
  const auto& asked = call->asked;
  // A call that has timed out was already on its way, so it arrives in spite of the fault.
  if (!call->done && (paths_[asked.endpoint].silent || paths_[asked.endpoint].down)) return;
  const std::shared_ptr<Message> served(call->response->New());
  const CallResult verdict =
      what.refuse ? *what.refuse
                  : etcd_.serve(asked.endpoint, asked.call, *asked.request, *served, asked.options);
  if (!what.answered) return;
  loop().at(loop().now() + what.back, [this, alive = alive_, call, served, verdict] {
    if (!*alive || call->done || paths_[call->asked.endpoint].silent) return;
    if (verdict.code == 0) call->response->CheckTypeAndMergeFrom(*served);
    finish(call, verdict);
  });
}

void FakeEtcdWire::finish(const std::shared_ptr<PendingCall>& call, const CallResult& verdict) {
  if (std::exchange(call->done, true)) return;
  --under_way_;
  call->answer(verdict, *call->response);
  call->answer = nullptr;
}

// ---- streams: messages keep their order in both directions, and silence delays them

class FakeEtcdWire::FakeStream final : public FakeHearer,
                                       public std::enable_shared_from_this<FakeStream> {
 public:
  FakeStream(FakeEtcdWire& wire, std::size_t endpoint, StreamKind flow, std::string token,
             StreamListener& listener)
      : wire_(wire),
        listener_(&listener),
        endpoint_(endpoint),
        flow_(flow),
        token_(std::move(token)) {}
  ~FakeStream() override {
    if (*wire_alive_) wire_.etcd_.stream_gone(this);
  }

  StreamKind flow() const { return flow_; }
  std::size_t endpoint() const { return endpoint_; }
  bool open() const { return listener_ != nullptr; }
  int connection() const { return connection_; }

  void send(const Message& message) {
    if (!*wire_alive_ || !open()) return;
    (flow_ == StreamKind::watch ? wire_.sent_watch_ : wire_.sent_keep_)++;
    wire_.stream_log_.push_back(copy(message));
    if (wire_.swallow && wire_.swallow(endpoint_, flow_, message)) return;
    put(up_, message);
  }
  void hear(const Message& response) override { put(down_, response); }
  void abandon() {
    listener_ = nullptr;
    if (*wire_alive_) wire_.etcd_.stream_gone(this);
  }
  void break_off(const CallResult& why) {
    if (!open()) return;
    wire_.etcd_.stream_gone(this);
    up_.clear();
    down_.clear();
    broken_ = true;
    wire_.loop().at(wire_.loop().now() + milliseconds(1), [self = shared_from_this(), why] {
      if (self->listener_ != nullptr) {
        std::exchange(self->listener_, nullptr)->stream_ended(why);
      }
    });
  }
  void pump() {
    const auto self = shared_from_this();
    const auto& path = wire_.paths_[endpoint_];
    if (connection_ < path.dead) return;
    const Time now = wire_.loop().now();
    while (open() && !path.silent && !up_.empty() && up_.front().first <= now) {
      const auto message = up_.front().second;
      up_.pop_front();
      reach(*message);
    }
    while (open() && !path.silent && !down_.empty() && down_.front().first <= now) {
      const auto message = down_.front().second;
      down_.pop_front();
      listener_->stream_message(*message);
      if (!*wire_alive_) return;
    }
  }

 private:
  using Queue = std::deque<std::pair<Time, std::shared_ptr<Message>>>;

  void put(Queue& queue, const Message& message) {
    if (broken_) return;
    const Nanos latency = wire_.stream_latency ? wire_.stream_latency() : milliseconds(1);
    Time due = wire_.loop().now() + latency;
    if (!queue.empty()) due = std::max(due, queue.back().first);
    queue.emplace_back(due, copy(message));
    wire_.loop().at(due, [weak = weak_from_this(), alive = wire_alive_] {
      if (const auto self = weak.lock(); self && *alive) self->pump();
    });
  }
  void reach(const Message& message) {
    if (flow_ == StreamKind::watch) {
      wire_.etcd_.watch(endpoint_, this, token_, static_cast<const etcdpb::WatchRequest&>(message));
      return;
    }
    if (const auto refused = wire_.etcd_.refuse_keep_alive(token_)) {
      break_off(*refused);
      return;
    }
    etcdpb::LeaseKeepAliveResponse response;
    const auto& request = static_cast<const etcdpb::LeaseKeepAliveRequest&>(message);
    if (!wire_.etcd_.keep_alive(endpoint_, request, response)) return;
    hear(response);
    if (wire_.answers_twice) hear(response);
  }

  FakeEtcdWire& wire_;
  const std::shared_ptr<bool> wire_alive_ = wire_.alive_;
  StreamListener* listener_;
  const std::size_t endpoint_;
  const StreamKind flow_;
  const std::string token_;
  Queue up_;
  Queue down_;
  bool broken_ = false;
  const int connection_ = wire_.paths_[endpoint_].renewed;
};

class FakeEtcdWire::Handle final : public Stream {
 public:
  explicit Handle(std::shared_ptr<FakeStream> stream) : stream_(std::move(stream)) {}
  ~Handle() override { stream_->abandon(); }
  void send(const Message& message) override { stream_->send(message); }

 private:
  const std::shared_ptr<FakeStream> stream_;
};

std::unique_ptr<Stream> FakeEtcdWire::open(std::size_t endpoint, StreamKind flow,
                                           const std::string& token, StreamListener& listener) {
  auto stream = std::make_shared<FakeStream>(*this, endpoint, flow, token, listener);
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
  if (paths_[endpoint].down) stream->break_off({14, "failed to connect to all addresses"});
  return std::make_unique<Handle>(std::move(stream));
}

// ---- faults

void FakeEtcdWire::break_streams(std::optional<StreamKind> flow, const CallResult& why) {
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (stream && (!flow || stream->flow() == *flow)) stream->break_off(why);
  }
}

void FakeEtcdWire::take_down(std::size_t i) {
  paths_[i].down = true;
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (stream && stream->endpoint() == i) stream->break_off({14, "connection reset"});
  }
}

void FakeEtcdWire::black_hole(std::size_t i) {
  const int connection = paths_[i].renewed;
  paths_[i].dead = connection + 1;
  loop().at(loop().now() + std::chrono::seconds(13), [this, alive = alive_, i, connection] {
    if (!*alive) return;
    paths_[i].renewed = std::max(paths_[i].renewed, connection + 1);
    const auto streams = streams_;
    for (const auto& weak : streams) {
      const auto stream = weak.lock();
      if (stream && stream->endpoint() == i && stream->connection() <= connection) {
        stream->break_off({14, "keepalive watchdog timeout"});
      }
    }
  });
}

void FakeEtcdWire::silence(std::size_t i, bool silent) {
  paths_[i].silent = silent;
  if (silent) return;
  const auto streams = streams_;
  for (const auto& weak : streams) {
    if (const auto stream = weak.lock()) loop().step([&] { stream->pump(); });
  }
}

void FakeEtcdWire::heal() {
  fate = nullptr;
  swallow = nullptr;
  stream_latency = nullptr;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    bring_up(i);
    silence(i, false);
  }
}

std::size_t FakeEtcdWire::count(Call call) const {
  return static_cast<std::size_t>(std::count_if(
      log_.begin(), log_.end(), [&](const auto& asked) { return asked.call == call; }));
}

std::size_t FakeEtcdWire::streams(StreamKind flow) const {
  return static_cast<std::size_t>(std::count_if(streams_.begin(), streams_.end(), [&](auto& weak) {
    const auto stream = weak.lock();
    return stream && stream->open() && stream->flow() == flow;
  }));
}

std::optional<std::size_t> FakeEtcdWire::where(StreamKind flow) const {
  std::optional<std::size_t> found;
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (stream && stream->open() && stream->flow() == flow) found = stream->endpoint();
  }
  return found;
}

}  // namespace baton::etcd

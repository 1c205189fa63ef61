#include "etcd/channels.h"

#include "common/base/signal_shield.h"
#include "etcd/baton_etcd_wire.pb.h"
#include "etcd/wall_clock.h"

#include <arpa/inet.h>
#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/channel_arguments.h>

#include <deque>
#include <utility>

namespace baton::etcd {

namespace {

using Stub = grpc::TemplatedGenericStub<Message, Message>;

// Calls use the path of the method. Generated stubs would clash with another library in the same
// program that also registers etcd's services.
const char* path_of(Call call) {
  switch (call) {
    case Call::range:
      return "/etcdserverpb.KV/Range";
    case Call::txn:
      return "/etcdserverpb.KV/Txn";
    case Call::lease_grant:
      return "/etcdserverpb.Lease/LeaseGrant";
    case Call::lease_revoke:
      return "/etcdserverpb.Lease/LeaseRevoke";
    case Call::lease_time_to_live:
      return "/etcdserverpb.Lease/LeaseTimeToLive";
    case Call::authenticate:
      return "/etcdserverpb.Auth/Authenticate";
    case Call::status:
      return "/etcdserverpb.Maintenance/Status";
  }
  return "";
}

CallResult verdict_of(const grpc::Status& status) {
  return {static_cast<int>(status.error_code()), status.error_message()};
}

void prepare(grpc::ClientContext& context, const std::string& token, bool require_leader) {
  if (require_leader) context.AddMetadata("hasleader", "true");
  if (!token.empty()) context.AddMetadata("token", token);
}

// One unary call. The object owns itself until the completion queue has returned its only tag.
class Unary final : public CompletionTag {
 public:
  Unary(std::shared_ptr<CallRegistry> calls, std::unique_ptr<Message> response, CallAnswer answer)
      : calls_(std::move(calls)), response_(std::move(response)), answer_(std::move(answer)) {}

  void start(const std::shared_ptr<grpc::Channel>& channel, Call call, const Message& request,
             const CallOptions& options) {
    prepare(context_, options.token, options.require_leader);
    // Not system_clock, because it can be set back or forward.
    context_.set_deadline(gpr_time_add(
        gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(options.timeout.count(), GPR_TIMESPAN)));
    reader_ = Stub(channel).PrepareUnaryCall(&context_, path_of(call), request, &calls_->queue());
    calls_->began(this);
    reader_->StartCall();
    reader_->Finish(response_.get(), &status_, this);
  }

  void cancel() noexcept override { context_.TryCancel(); }
  // The returned task cancels the call. Run it on the strand, while the loop runs. It does nothing
  // if the call has ended.
  Task canceller() const {
    return [here = here_] {
      const SignalShield shield;
      if (*here != nullptr) (*here)->cancel();
    };
  }

  void complete(bool, bool over) override {
    const std::unique_ptr<Unary> self(this);
    *here_ = nullptr;
    if (over) return;
    calls_->finished(this);
    answer_(verdict_of(status_), *response_);
  }

 private:
  const std::shared_ptr<CallRegistry> calls_;
  grpc::ClientContext context_;
  grpc::Status status_;
  std::unique_ptr<Message> response_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Message>> reader_;
  CallAnswer answer_;
  const std::shared_ptr<Unary*> here_ = std::make_shared<Unary*>(this);
};

std::unique_ptr<Message> empty_message(StreamKind flow) {
  if (flow == StreamKind::watch) return std::make_unique<etcdpb::WatchResponse>();
  return std::make_unique<etcdpb::LeaseKeepAliveResponse>();
}

// One bidirectional stream, with at most one read and one write under way. Its tags keep the object
// alive until the completion queue has returned the last one.
class Bidi final : public CompletionTag, public std::enable_shared_from_this<Bidi> {
 public:
  Bidi(std::shared_ptr<CallRegistry> calls, StreamKind flow, StreamListener& listener)
      : calls_(std::move(calls)), listener_(&listener), incoming_(empty_message(flow)) {}
  // Needed if the loop ended before the stream did: on_finish() was then never called.
  ~Bidi() override { calls_->finished(this); }
  Bidi(const Bidi&) = delete;
  Bidi& operator=(const Bidi&) = delete;

  void start(const std::shared_ptr<grpc::Channel>& channel, StreamKind flow,
             const std::string& token) {
    prepare(context_, token, true);
    stream_ =
        Stub(channel).PrepareCall(&context_,
                                  flow == StreamKind::watch ? "/etcdserverpb.Watch/Watch"
                                                            : "/etcdserverpb.Lease/LeaseKeepAlive",
                                  &calls_->queue());
    calls_->began(this);
    begin(start_);
    stream_->StartCall(&start_);
  }

  // Called by StreamHandle.
  void send(const Message& message) {
    if (listener_ == nullptr || broken_ || calls_->ended()) return;
    auto copy = std::unique_ptr<Message>(message.New());
    copy->CheckTypeAndMergeFrom(message);
    outgoing_.push_back(std::move(copy));
    if (started_) write_next();
  }
  void abandon() noexcept {
    listener_ = nullptr;
    cancel();
  }
  void cancel() noexcept override { context_.TryCancel(); }
  void complete(bool, bool) override {}  // each operation has its own tag

 private:
  struct Operation final : CompletionTag {
    using Handler = void (Bidi::*)(bool);
    Operation(Bidi& bidi, Handler handler) : owner(bidi), done(handler) {}
    void complete(bool ok, bool over) override {
      const auto self = std::exchange(kept, nullptr);
      --owner.under_way_;
      if (over) {
        owner.over();
      } else {
        (owner.*done)(ok);
      }
    }
    Bidi& owner;
    const Handler done;
    std::shared_ptr<Bidi> kept;  // set while the operation is under way
  };

  void begin(Operation& operation) {
    operation.kept = shared_from_this();
    ++under_way_;
  }

  void on_start(bool ok) {
    started_ = ok;
    if (!ok) {
      fail();
      return;
    }
    read_next();
    write_next();
  }
  void on_read(bool ok) {
    if (!ok) {
      fail();
      return;
    }
    if (listener_ != nullptr) listener_->stream_message(*incoming_);
    if (broken_ || listener_ == nullptr) {
      fail();
    } else {
      read_next();
    }
  }
  void on_write(bool ok) {
    writing_ = nullptr;
    if (ok && !broken_ && listener_ != nullptr) {
      write_next();
    } else {
      fail();
    }
  }
  void on_finish(bool) {
    calls_->finished(this);
    if (listener_ != nullptr) std::exchange(listener_, nullptr)->stream_ended(verdict_of(status_));
  }

  void read_next() {
    if (calls_->ended()) return;
    begin(read_);
    stream_->Read(incoming_.get(), &read_);
  }
  void write_next() {
    if (writing_ != nullptr || outgoing_.empty() || calls_->ended()) return;
    writing_ = std::move(outgoing_.front());
    outgoing_.pop_front();
    begin(write_);
    stream_->Write(*writing_, &write_);
  }
  // Calls Finish() once, after all other operations have completed. Until then it only cancels.
  void fail() {
    broken_ = true;
    if (under_way_ != 0) {
      context_.TryCancel();
      return;
    }
    if (std::exchange(finishing_, true) || calls_->ended()) return;
    begin(finish_);
    stream_->Finish(&status_, &finish_);
  }
  void over() noexcept { listener_ = nullptr; }

  const std::shared_ptr<CallRegistry> calls_;
  StreamListener* listener_;
  grpc::ClientContext context_;
  grpc::Status status_;
  std::unique_ptr<Message> incoming_;
  std::unique_ptr<Message> writing_;
  std::deque<std::unique_ptr<Message>> outgoing_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Message, Message>> stream_;
  Operation start_{*this, &Bidi::on_start};
  Operation read_{*this, &Bidi::on_read};
  Operation write_{*this, &Bidi::on_write};
  Operation finish_{*this, &Bidi::on_finish};
  int under_way_ = 0;
  bool started_ = false;
  bool broken_ = false;
  bool finishing_ = false;
};

class StreamHandle final : public Stream {
 public:
  explicit StreamHandle(std::shared_ptr<Bidi> bidi) : bidi_(std::move(bidi)) {}
  ~StreamHandle() override {
    const SignalShield shield;
    bidi_->abandon();
  }
  void send(const Message& message) override {
    const SignalShield shield;
    bidi_->send(message);
  }

 private:
  const std::shared_ptr<Bidi> bidi_;
};

}  // namespace

std::vector<ChannelEndpoint> make_channel_endpoints(
    const std::vector<Endpoint>& endpoints,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  const SignalShield shield;
  std::vector<ChannelEndpoint> made;
  for (const auto& endpoint : endpoints) {
    grpc::ChannelArguments arguments;
    // Keepalive pings detect a dead peer within 13 s while a call or a stream is open. etcd closes
    // connections that ping more often than every 5 s.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // gRPC's defaults are 1 s to 2 minutes. The minimum backoff is also the time limit of one
    // attempt to connect.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);     // baton retries itself
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // ignore the environment variable http_proxy
    arguments.SetMaxReceiveMessageSize(32 << 20);
    // Do not share connections with other channels of the process: their traffic would delay our
    // heartbeats.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const bool v6 = endpoint.host.find(':') != std::string::npos;
    const std::string name =
        (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
    in_addr v4_address{};
    const bool v4 = inet_pton(AF_INET, endpoint.host.c_str(), &v4_address) == 1;
    // IP addresses need no name resolution.
    const std::string target = (v4 ? "ipv4:" : v6 ? "ipv6:" : "dns:///") + name;
    const auto make = [target, credentials, arguments] {
      return grpc::CreateCustomChannel(target, credentials, arguments);
    };
    made.push_back({name, make(), make});
  }
  return made;
}

Channels::Channels(const CompletionLoop& loop, std::vector<ChannelEndpoint> endpoints)
    : calls_(loop.calls()), endpoints_(std::move(endpoints)) {}

Channels::~Channels() {
  const SignalShield shield;
  endpoints_.clear();
}

// Every call to gRPC is made under a SignalShield. The strand also runs on threads of the program,
// and gRPC may start threads in any call. A new thread inherits the signal mask of the thread that
// starts it.

// gRPC's timers wait on the wall clock. When the wall clock is set back they stand still, so
// neither the backoff before the next attempt to connect nor the time limit of an attempt ends. The
// boot clock is not affected, and a new channel connects at once. At all other times the channel is
// kept: gRPC then reconnects by itself, and keeps the addresses that it has resolved.
void Channels::check_connecting(std::size_t i) {
  constexpr std::chrono::seconds kLongestConnect{2};
  auto& endpoint = endpoints_.at(i);
  const Time now = real_clock().now();
  const bool stands = wall_clock_was_set_back();
  const auto state = endpoint.channel->GetState(true);
  if (!stands || state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_IDLE) {
    endpoint.connecting_since.reset();
    return;
  }
  if (!endpoint.connecting_since) endpoint.connecting_since = now;
  if (now - *endpoint.connecting_since < kLongestConnect) return;
  replace(endpoint);
  endpoint.connecting_since = now;
}

void Channels::replace(ChannelEndpoint& endpoint) {
  if (!endpoint.another || calls_->ended()) return;
  endpoint.channel = endpoint.another();
}

bool Channels::unreachable(std::size_t i) {
  const SignalShield shield;
  check_connecting(i);
  return endpoints_.at(i).channel->GetState(true) == GRPC_CHANNEL_TRANSIENT_FAILURE;
}

void Channels::renew(std::size_t i) {
  const SignalShield shield;
  auto& endpoint = endpoints_.at(i);
  // A channel that is not connected cannot be a silent connection: let it continue to connect.
  if (endpoint.channel->GetState(false) != GRPC_CHANNEL_READY) return;
  // Calls under way keep the old channel until they end. The new channel really opens a new
  // connection because the subchannel pool is local.
  replace(endpoint);
}

void Channels::ask(std::size_t endpoint, Call call, const Message& request,
                   std::unique_ptr<Message> response, const CallOptions& options, CallAnswer answer,
                   Task* cancel) {
  if (calls_->ended()) return;
  const SignalShield shield;
  check_connecting(endpoint);
  auto unary = std::make_unique<Unary>(calls_, std::move(response), std::move(answer));
  if (cancel != nullptr) *cancel = unary->canceller();
  unary.release()->start(endpoints_.at(endpoint).channel, call, request, options);
}

std::unique_ptr<Stream> Channels::open(std::size_t endpoint, StreamKind flow,
                                       const std::string& token, StreamListener& listener) {
  const SignalShield shield;
  auto bidi = std::make_shared<Bidi>(calls_, flow, listener);
  if (!calls_->ended()) check_connecting(endpoint);
  if (!calls_->ended()) bidi->start(endpoints_.at(endpoint).channel, flow, token);
  return std::make_unique<StreamHandle>(std::move(bidi));
}

}  // namespace baton::etcd

// A transport to the fake etcd cluster on which a fuzzer changes the answers of the servers.
#pragma once

#include "etcd/baton_etcd_wire.pb.h"
#include "fake_etcd_wire.h"
#include "fuzz.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::fuzz {

using namespace internal;
using namespace etcd;

class LyingWire final : public etcd::Transport {
 public:
  LyingWire(FakeEtcd& etcd, Input& in) : inner_(etcd), in_(in) {}

  bool lies = false;                            // while true, change() may change each message
  bool lied() const noexcept { return lied_; }  // at least one message was changed
  // Every range answer that the client received, alone or as the last part of a transaction.
  const std::vector<etcdpb::RangeResponse>& readings() const { return readings_; }
  FakeEtcdWire& inner() { return inner_; }

  std::size_t endpoints() const override { return inner_.endpoints(); }
  std::string endpoint(std::size_t i) const override { return inner_.endpoint(i); }
  bool unreachable(std::size_t i) override { return inner_.unreachable(i); }
  void renew(std::size_t i) override { inner_.renew(i); }

  void ask(std::size_t endpoint, etcd::Call call, const etcd::Message& request,
           std::unique_ptr<etcd::Message> response, const etcd::CallOptions& options,
           etcd::CallAnswer answer, Task* cancel) override {
    inner_.ask(
        endpoint, call, request, std::move(response), options,
        [this, call, answer = std::move(answer)](const etcd::CallResult& verdict,
                                                 etcd::Message& body) mutable {
          etcd::CallResult said = verdict;
          if (lies) change(said, body);
          if (said.code == 0) note(call, body);
          answer(said, body);
        },
        cancel);
  }

  std::unique_ptr<etcd::Stream> open(std::size_t endpoint, etcd::StreamKind flow,
                                     const std::string& token,
                                     etcd::StreamListener& listener) override {
    auto stream = std::make_unique<Stream>(*this, listener);
    stream->inner = inner_.open(endpoint, flow, token, *stream);
    return stream;
  }

 private:
  struct Stream final : etcd::Stream, etcd::StreamListener {
    Stream(LyingWire& to, etcd::StreamListener& whom) : wire(to), listener(whom) {}
    void send(const etcd::Message& message) override { inner->send(message); }
    void stream_message(const etcd::Message& message) override {
      const std::unique_ptr<etcd::Message> copy(message.New());
      copy->CheckTypeAndMergeFrom(message);
      etcd::CallResult said;
      if (wire.lies) wire.change(said, *copy);
      if (said.code != 0) {
        listener.stream_ended(said);  // may delete this stream
      } else {
        listener.stream_message(*copy);
      }
    }
    void stream_ended(const etcd::CallResult& why) override { listener.stream_ended(why); }
    LyingWire& wire;
    etcd::StreamListener& listener;
    std::unique_ptr<etcd::Stream> inner;
  };

  // Leaves the message as it is, adds to it, replaces it, or turns it into an error.
  void change(etcd::CallResult& verdict, etcd::Message& body) {
    switch (in_.byte() % 8) {
      case 0:
      case 1:
        body.MergeFromString(in_.text());
        break;
      case 2:
        body.ParseFromString(in_.text());
        break;
      case 3:
        verdict = {in_.byte() % 20, in_.text()};
        break;
      case 4:
        twist(body);
        break;
      default:
        return;
    }
    lied_ = true;
  }

  // Sets the fields that matter to the client to extreme values.
  void twist(etcd::Message& body) {
    const auto number = [this] { return static_cast<std::int64_t>(in_.edge()); };
    if (auto* range = reading_in(body)) {
      const std::uint8_t what = in_.byte();
      if ((what & 1) != 0) range->set_more(!range->more());
      if ((what & 2) != 0) range->set_count(number());
      if ((what & 4) != 0) range->mutable_header()->set_revision(number());
      for (auto& kv : *range->mutable_kvs()) {
        if ((in_.byte() & 7) == 0) kv.set_create_revision(number());
        if ((in_.byte() & 7) == 0) kv.set_key(kv.key() + in_.text());
      }
      if ((what & 8) != 0 && range->kvs_size() > 0) *range->add_kvs() = range->kvs(0);
      if ((what & 16) != 0 && range->kvs_size() > 0) range->mutable_kvs()->RemoveLast();
    } else if (auto* watch = dynamic_cast<etcdpb::WatchResponse*>(&body)) {
      const std::uint8_t what = in_.byte();
      if ((what & 1) != 0) watch->set_created(!watch->created());
      if ((what & 2) != 0) watch->set_canceled(!watch->canceled());
      if ((what & 4) != 0) watch->set_watch_id(number());
      if ((what & 8) != 0) watch->set_compact_revision(number());
      if ((what & 16) != 0) watch->mutable_header()->set_revision(number());
      if ((what & 32) != 0) watch->set_cancel_reason(in_.text());
      auto& event = *watch->add_events();
      event.set_type(in_.flag() ? etcdpb::Event::DELETE : etcdpb::Event::PUT);
      event.mutable_kv()->set_mod_revision(number());
    }
  }

  static etcdpb::RangeResponse* reading_in(etcd::Message& body) {
    if (auto* range = dynamic_cast<etcdpb::RangeResponse*>(&body)) return range;
    auto* txn = dynamic_cast<etcdpb::TxnResponse*>(&body);
    if (txn == nullptr || txn->responses_size() == 0) return nullptr;
    auto& last = *txn->mutable_responses(txn->responses_size() - 1);
    return last.has_response_range() ? last.mutable_response_range() : nullptr;
  }

  void note(etcd::Call call, etcd::Message& body) {
    if (call != etcd::Call::range && call != etcd::Call::txn) return;
    if (auto* reading = reading_in(body)) readings_.push_back(*reading);
  }

  FakeEtcdWire inner_;
  Input& in_;
  bool lied_ = false;
  std::vector<etcdpb::RangeResponse> readings_;
};

}  // namespace baton::fuzz

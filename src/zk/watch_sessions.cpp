#include "zk/watch_sessions.h"

#include <cstddef>
#include <string>
#include <utility>

namespace baton::zk {

class WatchSessions::WatchSession final : public TransportListener {
 public:
  WatchSession(WatchSessions& all, std::size_t lane) : all_(all), lane_(lane) {
    transport_ = all_.parts_.make_transport(*this);
    outbox_.attach(transport_.get());
  }
  Outbox& outbox() noexcept { return outbox_; }

  void transport_connected(const Connection&) override { outbox_.connected(); }
  void transport_disconnected() override {
    outbox_.disconnected();
    if (all_.phase_ == Phase::open) all_.watches_.lane_cut(lane_);
  }
  void transport_ended(Status, const std::string&) override {
    all_.last_end_ = all_.parts_.loop->now();
    outbox_.disconnected();
    transport_.reset();
    ended_ = true;
    all_.parts_.loop->defer(all_.lifetime_.guard([all = &all_] {
      if (all->phase_ != Phase::ended)
        std::erase_if(all->sessions_, [](const auto& session) { return session->ended_; });
    }));
    if (all_.phase_ != Phase::ended) all_.watches_.lane_ended(lane_);
  }
  void transport_event(NodeEvent news, const std::string& path) override {
    if (all_.phase_ != Phase::ended) all_.watches_.news(lane_, news, path);
  }

 private:
  WatchSessions& all_;
  const std::size_t lane_;
  bool ended_ = false;
  std::unique_ptr<Transport> transport_;
  Outbox outbox_;
};

WatchSessions::WatchSessions(const SessionParts& parts, Watches& watches)
    : parts_(parts), watches_(watches) {}

WatchSessions::~WatchSessions() { lifetime_.end(); }

Outbox* WatchSessions::open(std::chrono::milliseconds pause) {
  constexpr std::size_t kMost = 8;  // servers allow 60 connections per address
  if (phase_ != Phase::open || sessions_.size() >= kMost) return nullptr;
  // Without this pause a session that ends at once would be reopened without end.
  if (last_end_ != Time{} && parts_.loop->now() < last_end_ + pause) return nullptr;
  parts_.log(LogLevel::info,
             "the watches exceed the limit of one session; opening another session for them");
  sessions_.push_back(std::make_unique<WatchSession>(*this, watches_.lanes()));
  return &sessions_.back()->outbox();
}

void WatchSessions::close() noexcept {
  if (phase_ == Phase::open) phase_ = Phase::closing;
}

}  // namespace baton::zk

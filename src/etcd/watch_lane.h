// Watches::Lane: one shared stream of Watches. Included only by watches.cpp.
#pragma once

#include "etcd/watches.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace baton::etcd {

// One stream and the watches on it. When the stream breaks, the lane opens another one and
// continues the watches there.
class Watches::Lane final : public StreamListener {
 public:
  static constexpr std::chrono::milliseconds kCreateTimeout{2'000};
  static constexpr std::chrono::milliseconds kFirstPause{100};
  static constexpr std::chrono::milliseconds kLongestPause{2'000};
  static constexpr int kMostRefusals = 3;
  // To start a watch further behind, a member must read all changes since that revision, which
  // delays its other watches.
  static constexpr std::int64_t kMostBehind = 1'000;

  explicit Lane(Watches& owner) : owner_(owner) {}
  ~Lane() override { owner_.loop_.cancel(timer_), owner_.loop_.cancel(pause_); }

  std::size_t size() const noexcept { return ids_.size(); }
  std::size_t endpoint() const noexcept { return endpoint_; }
  bool open() const noexcept { return stream_ != nullptr; }

  void add(const WatchPtr& watch) {
    ids_.insert(watch->id);
    watch->lane = this;
    if (pause_ != TimerId::none || opening_) return;  // created when it opens
    if (stream_ == nullptr) {
      open_all();
    } else {
      create(*watch);
    }
  }

  void remove(const Watch& watch) {
    ids_.erase(watch.id);
    // Stop the timer if this was the last pending request. Do not restart it otherwise: that would
    // give the other requests more time.
    if (pending_.erase(watch.id) > 0 && pending_.empty()) refresh_timer();
    if (stream_ == nullptr) return;
    etcdpb::WatchRequest request;
    request.mutable_cancel_request()->set_watch_id(watch.id);
    stream_->send(request);
  }

  // Opens a new stream to the current endpoint.
  void renew(bool at_once) {
    stream_.reset();
    pending_.clear();
    owner_.loop_.cancel(std::exchange(timer_, TimerId::none));
    owner_.loop_.cancel(std::exchange(pause_, TimerId::none));
    if (ids_.empty()) return;
    Nanos pause{};
    if (!at_once || failures_ > 0) {
      const auto base = std::min(kFirstPause * (1 << std::min(failures_, 5)), kLongestPause);
      std::uniform_int_distribution<std::int64_t> jitter(Nanos(base).count() / 2,
                                                         Nanos(base).count());
      pause = Nanos(jitter(owner_.random_));
    }
    ++failures_;
    pause_ = owner_.loop_.at(owner_.loop_.now() + pause, [this] {
      pause_ = TimerId::none;
      open_all();
    });
  }

 private:
  void open_all() {
    if (std::exchange(opening_, true)) return;
    // Servers refuse watches on a stream that was opened without a token or with an expired token.
    owner_.link_.with_token(owner_.lifetime_.guard([this] {
      opening_ = false;
      if (stream_ != nullptr || pause_ != TimerId::none) return;
      endpoint_ = owner_.link_.current();
      token_ = owner_.link_.token();
      stream_ = owner_.link_.open(endpoint_, StreamKind::watch, *this);
      for (const std::int64_t id : ids_) {
        if (const auto watch = owner_.find(id)) create(*watch);
      }
    }));
  }

  void create(Watch& watch) {
    etcdpb::WatchRequest request;
    auto& create = *request.mutable_create_request();
    create.set_key(watch.want.key);
    create.set_watch_id(watch.id);
    create.add_filters(watch.on_put ? etcdpb::WatchCreateRequest::NODELETE
                                    : etcdpb::WatchCreateRequest::NOPUT);
    if (!watch.on_put && owner_.link_.revision() - watch.covered > kMostBehind) {
      watch.covered = 0;  // start at the current revision, followed by one look
    }
    if (watch.covered != 0) create.set_start_revision(watch.covered + 1);
    stream_->send(request);
    watch.on(WatchStep::create_sent);
    watch.looking = 0;  // ignore the result of an earlier look
    pending_.insert(watch.id);
    if (timer_ == TimerId::none) refresh_timer();
  }

  void refresh_timer() {
    owner_.loop_.cancel(std::exchange(timer_, TimerId::none));
    if (pending_.empty() || stream_ == nullptr) return;
    // The timeout counts from the last answered request, because many requests at once take longer.
    timer_ = owner_.loop_.at(owner_.loop_.now() + kCreateTimeout, [this] {
      timer_ = TimerId::none;
      owner_.link_.silent(endpoint_, "no answer to a watch request in time");
      renew(false);
    });
  }

  void stream_message(const Message& message) override {
    const auto& response = static_cast<const etcdpb::WatchResponse&>(message);
    if (!owner_.link_.heard(endpoint_, response.header())) return;
    if (response.canceled() && response.watch_id() < 0) {
      refused(response.cancel_reason());
      return;
    }
    const auto watch =
        ids_.contains(response.watch_id()) ? owner_.find(response.watch_id()) : nullptr;
    // The answer for a watch that was cancelled meanwhile also shows that the server is alive.
    if (pending_.erase(response.watch_id()) > 0 || response.created()) refresh_timer();
    if (watch == nullptr) return;  // cancelled meanwhile
    if (response.canceled()) {
      cancelled(watch, response);
      return;
    }
    if (pending_.empty()) failures_ = refusals_ = 0;  // all watches were accepted
    if (response.created()) {
      owner_.created(watch, response.header().revision());
      return;
    }
    const auto alive = owner_.lifetime_.watch();
    for (const auto& event : response.events()) {
      if (!alive || watch->lane != this) return;
      owner_.event(watch, event);
    }
  }

  // A watch was refused; servers do not report which one. Most likely the stream's token has
  // expired, which affects only new watches.
  void refused(const std::string& why) {
    owner_.link_.forget_token(token_);
    if (++refusals_ < kMostRefusals) {
      renew(false);
      return;
    }
    // The callers look for themselves, and the look reports the reason to them. pause() delays the
    // look, because otherwise watch and look would alternate without a pause.
    owner_.link_.note(endpoint_, "a watch was refused: " + why);
    refusals_ = 0;
    stream_.reset();
    pending_.clear();
    owner_.loop_.cancel(std::exchange(timer_, TimerId::none));
    const auto ids = ids_;
    for (const std::int64_t id : ids) {
      if (const auto watch = owner_.find(id)) owner_.pause(watch);
    }
  }

  // The server cancelled a watch because of compaction, or without a reason. This never counts as a
  // deletion: the caller looks, and watches again. A watch for puts starts again at the current
  // revision.
  void cancelled(const WatchPtr& watch, const etcdpb::WatchResponse& response) {
    if (response.cancel_reason().find("permission") != std::string::npos ||
        response.cancel_reason().find("auth") != std::string::npos ||
        response.cancel_reason().find("user name") != std::string::npos) {
      refused(response.cancel_reason());
    } else if (watch->on_put) {
      owner_.begin_anew(watch);
    } else if (response.compact_revision() != 0) {
      owner_.fire(watch, {});
    } else {
      owner_.pause(watch);
    }
  }

  void stream_ended(const CallResult& why) override {
    owner_.link_.failed(endpoint_, why);
    if (status_of(why) == Status::token_expired) owner_.link_.forget_token(token_);
    renew(true);
  }

  Watches& owner_;
  std::unique_ptr<Stream> stream_;
  std::size_t endpoint_ = 0;
  std::set<std::int64_t> ids_;
  std::set<std::int64_t> pending_;  // unanswered create requests
  std::string token_;               // the token with which the stream was opened
  int refusals_ = 0;                // consecutive
  bool opening_ = false;
  int failures_ = 0;
  TimerId timer_ = TimerId::none;
  TimerId pause_ = TimerId::none;
};

}  // namespace baton::etcd

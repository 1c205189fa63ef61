// The watches of a FakeEtcd.
#include "fakes/fake_etcd.h"

#include <algorithm>
#include <iterator>

namespace baton::etcd {

void FakeEtcd::watch(std::size_t i, FakeHearer* stream, const std::string& token,
                     const etcdpb::WatchRequest& request) {
  if (request.has_cancel_request()) {
    const auto id = request.cancel_request().watch_id();
    const auto gone = std::erase_if(watchers_, [&](const auto& watcher) {
      return watcher->stream == stream && watcher->id == id;
    });
    if (gone == 0) return;
    etcdpb::WatchResponse response;
    fill(i, *response.mutable_header());
    response.set_watch_id(id);
    response.set_canceled(true);
    stream->hear(response);
    return;
  }
  const auto& create = request.create_request();
  etcdpb::WatchResponse created;
  fill(i, *created.mutable_header());
  created.set_watch_id(create.watch_id());
  created.set_created(true);
  if (auth_ && !tokens_.contains(token)) {
    if (!names_refused_watches) created.set_watch_id(-1);
    created.set_canceled(true);
    created.set_cancel_reason(refusal);
    stream->hear(created);
    return;
  }
  stream->hear(created);
  auto watcher = std::make_unique<Watcher>();
  watcher->member = i;
  watcher->stream = stream;
  watcher->id = create.watch_id();
  watcher->key = create.key();
  watcher->next = create.start_revision() == 0 ? members_[i].applied + 1 : create.start_revision();
  for (const int filter : create.filters()) {
    (filter == etcdpb::WatchCreateRequest::NOPUT ? watcher->puts : watcher->deletes) = false;
  }
  if (watcher->next < compacted_) {
    cancel_compacted(*watcher);
    return;
  }
  watcher->mute = loses_watch && loses_watch();
  watchers_.push_back(std::move(watcher));
  follow(*watchers_.back());
}

void FakeEtcd::cancel_compacted(const Watcher& watcher) {
  etcdpb::WatchResponse cancelled;
  fill(watcher.member, *cancelled.mutable_header());
  cancelled.set_watch_id(watcher.id);
  cancelled.set_canceled(true);
  cancelled.set_compact_revision(compacted_);
  watcher.stream->hear(cancelled);
}

void FakeEtcd::compact(std::int64_t revision) {
  compacted_ = revision;
  std::erase_if(watchers_, [this](const auto& watcher) {
    if (watcher->next >= compacted_) return false;
    cancel_compacted(*watcher);
    return true;
  });
}

void FakeEtcd::follow(Watcher& watcher) {
  const std::int64_t applied = members_[watcher.member].applied;
  if (watcher.next > applied) return;
  etcdpb::WatchResponse response;
  // Start with the first event that the watch has not reported. The history is in the order of
  // revisions.
  auto first = history_.end();
  while (first != history_.begin() && std::prev(first)->kv().mod_revision() >= watcher.next) {
    --first;
  }
  for (; first != history_.end() && first->kv().mod_revision() <= applied; ++first) {
    const auto& event = *first;
    if (event.kv().key() != watcher.key) continue;
    if (event.type() == etcdpb::Event::PUT ? watcher.puts : watcher.deletes) {
      *response.add_events() = event;
    }
  }
  watcher.next = std::max(watcher.next, applied + 1);
  if (response.events_size() == 0 || watcher.mute) return;
  ++told;
  fill(watcher.member, *response.mutable_header());
  response.set_watch_id(watcher.id);
  watcher.stream->hear(response);
  if (doubles_event && doubles_event()) watcher.stream->hear(response);
}

void FakeEtcd::stream_gone(FakeHearer* stream) {
  std::erase_if(watchers_, [&](const auto& watcher) { return watcher->stream == stream; });
}

}  // namespace baton::etcd

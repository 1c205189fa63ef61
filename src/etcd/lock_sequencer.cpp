#include "etcd/lock_sequencer.h"

#include <deque>
#include <map>
#include <set>
#include <utility>

namespace baton::etcd {

// The requests of each lock. Turns and removals hold a weak pointer to it.
class LockSequencer::Lanes : public std::enable_shared_from_this<Lanes> {
 public:
  struct Request {
    JoinStart join;  // this one or the other
    PeekStart peek;
    std::uint64_t after = 0;  // the newest removal that this request waits for
  };

  explicit Lanes(Loop& loop) : loop_(loop) {}

  void add(const std::string& prefix, Request request);
  std::uint64_t add_removal(const std::string& prefix);
  void end_turn(const std::string& prefix, bool served);
  void end_removal(const std::string& prefix, std::uint64_t id);
  // Calls end later, if the sequencer still exists then.
  template <class End>
  void end_later(End end);
  void close() noexcept { closed_ = true; }
  std::size_t size() const noexcept { return lanes_.size(); }

 private:
  struct Lane {
    bool joining = false;
    bool pumping = false;
    std::set<std::uint64_t> removals;
    std::deque<Request> waiting;
  };

  void pump(const std::string& prefix);

  Loop& loop_;
  std::map<std::string, Lane> lanes_;
  std::uint64_t next_ = 1;
  bool closed_ = false;
};

void LockSequencer::Lanes::add(const std::string& prefix, Request request) {
  Lane& lane = lanes_[prefix];
  request.after = lane.removals.empty() ? 0 : *lane.removals.rbegin();
  lane.waiting.push_back(std::move(request));
  pump(prefix);
}

std::uint64_t LockSequencer::Lanes::add_removal(const std::string& prefix) {
  const std::uint64_t id = next_++;
  lanes_[prefix].removals.insert(id);
  return id;
}

void LockSequencer::Lanes::end_turn(const std::string& prefix, bool served) {
  const auto found = lanes_.find(prefix);
  if (closed_ || found == lanes_.end()) return;
  found->second.joining = false;
  if (!served) {
    auto rejected = std::exchange(found->second.waiting, {});
    for (auto& request : rejected) {
      if (request.join) {
        request.join(std::nullopt);
      } else {
        request.peek(false);
      }
    }
  }
  pump(prefix);
}

void LockSequencer::Lanes::end_removal(const std::string& prefix, std::uint64_t id) {
  const auto found = lanes_.find(prefix);
  if (closed_ || found == lanes_.end()) return;
  found->second.removals.erase(id);
  pump(prefix);
}

template <class End>
void LockSequencer::Lanes::end_later(End end) {
  if (closed_) return;
  loop_.defer([weak = weak_from_this(), end = std::move(end)] {
    if (const auto lanes = weak.lock()) end(*lanes);
  });
}

void LockSequencer::Lanes::pump(const std::string& prefix) {
  const auto found = lanes_.find(prefix);
  if (closed_ || found == lanes_.end() || std::exchange(found->second.pumping, true)) return;
  // A request that starts may add and erase lanes of other locks: references into a std::map stay
  // valid. `pumping` prevents a nested call from erasing this lane.
  Lane& lane = found->second;
  while (!closed_ && !lane.waiting.empty()) {
    const Request& next = lane.waiting.front();
    if (next.join && lane.joining) break;
    if (!lane.removals.empty() && *lane.removals.begin() <= next.after) break;
    Request request = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    if (request.join) {
      lane.joining = true;
      request.join(Turn(weak_from_this(), prefix));
    } else {
      request.peek(true);
    }
  }
  lane.pumping = false;
  if (lane.waiting.empty() && lane.removals.empty() && !lane.joining) lanes_.erase(found);
}

// ---- the end of a request

LockSequencer::Turn::Turn(std::weak_ptr<Lanes> lanes, std::string prefix)
    : lanes_(std::move(lanes)), prefix_(std::move(prefix)) {}

LockSequencer::Turn::~Turn() {
  if (const auto lanes = lanes_.lock()) {
    lanes->end_later([prefix = prefix_](Lanes& all) { all.end_turn(prefix, true); });
  }
}

void LockSequencer::Turn::end(bool served) {
  const auto lanes = std::exchange(lanes_, {}).lock();
  if (lanes != nullptr) lanes->end_turn(prefix_, served);
}

LockSequencer::Removal::Removal(std::weak_ptr<Lanes> lanes, std::string prefix, std::uint64_t id)
    : lanes_(std::move(lanes)), prefix_(std::move(prefix)), id_(id) {}

LockSequencer::Removal::~Removal() {
  if (const auto lanes = lanes_.lock()) {
    lanes->end_later([prefix = prefix_, id = id_](Lanes& all) { all.end_removal(prefix, id); });
  }
}

void LockSequencer::Removal::end() {
  const auto lanes = std::exchange(lanes_, {}).lock();
  if (lanes != nullptr) lanes->end_removal(prefix_, id_);
}

// ---- LockSequencer

LockSequencer::LockSequencer(Loop& loop) : lanes_(std::make_shared<Lanes>(loop)) {}

// A waiting request may own a Turn or a Removal, whose destructor must not defer a task then.
LockSequencer::~LockSequencer() { lanes_->close(); }

void LockSequencer::join(const std::string& prefix, JoinStart start) {
  lanes_->add(prefix, {std::move(start), nullptr, 0});
}

void LockSequencer::peek(const std::string& prefix, PeekStart start) {
  lanes_->add(prefix, {nullptr, std::move(start), 0});
}

LockSequencer::Removal LockSequencer::removing(const std::string& prefix) {
  return {lanes_, prefix, lanes_->add_removal(prefix)};
}

void LockSequencer::close() { lanes_->close(); }

std::size_t LockSequencer::size() const noexcept { return lanes_->size(); }

}  // namespace baton::etcd

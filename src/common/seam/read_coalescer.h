// ReadCoalescer: lets callers who read the same thing share one read, so that a burst of joins
// costs a few reads, not one for each join.
#pragma once

#include "common/base/lifetime.h"
#include "common/base/loop.h"
#include "common/base/unique_function.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {

// Need: what a caller needs of the read. Reading: what the read answers with. Every read starts
// after the calls of read() that it serves, so it shows everything that its callers did before.
// While it is under way, new callers wait and share the next one.
template <class Need, class Reading>
class ReadCoalescer {
 public:
  using Handler = UniqueFunction<void(Reading&)>;
  // Starts a read of `what` and calls the handler once with the result, never inside this call.
  using Send = UniqueFunction<void(const std::string& what, Need need, Handler answered)>;
  // What satisfies both callers.
  using Merge = Need (*)(Need, Need);
  enum class Start {
    at_once,      // the read keeps its place among the requests of its first caller
    end_of_step,  // all callers of this step of the strand share the read
  };

  ReadCoalescer(Loop& loop, Start start, Merge merge, Send send)
      : loop_(loop), start_(start), merge_(merge), send_(std::move(send)) {}
  ~ReadCoalescer() { lifetime_.end(); }
  ReadCoalescer(const ReadCoalescer&) = delete;
  ReadCoalescer& operator=(const ReadCoalescer&) = delete;

  // The handler is not called after the coalescer is destroyed.
  void read(const std::string& what, Need need, Handler handler) {
    const auto [place, first] = subjects_.try_emplace(what);
    Subject& subject = place->second;
    subject.need = subject.waiting.empty() ? need : merge_(subject.need, need);
    subject.waiting.push_back(std::move(handler));
    if (!first) return;
    if (start_ == Start::at_once) return send(what, subject);
    loop_.defer(lifetime_.guard([this, what] { send(what, subjects_.at(what)); }));
  }

 private:
  // Something that is being read, or will be at the end of this step.
  struct Subject {
    std::vector<Handler> waiting;  // for the next read
    Need need{};                   // of all that wait
  };

  void send(const std::string& what, Subject& subject) {
    send_(what, subject.need,
          lifetime_.guard([this, what, served = std::exchange(subject.waiting, {})](
                              Reading& reading) mutable { answered(what, served, reading); }));
  }

  void answered(const std::string& what, std::vector<Handler>& served, Reading& reading) {
    // Send the next read before calling the handlers: they may request more reads or destroy this
    // object.
    const auto subject = subjects_.find(what);
    if (subject->second.waiting.empty()) {
      subjects_.erase(subject);
    } else {
      send(what, subject->second);
    }
    const auto alive = lifetime_.watch();
    for (auto& handler : served) {
      handler(reading);
      if (!alive) return;
    }
  }

  Loop& loop_;
  const Start start_;
  const Merge merge_;
  Send send_;
  std::map<std::string, Subject> subjects_;
  Lifetime lifetime_;
};

}  // namespace baton::internal

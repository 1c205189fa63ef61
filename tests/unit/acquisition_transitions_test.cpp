// Sends every event to the real acquisition machine in every situation, and compares the result
// with the table (acquisition_table.h). An event without a row is an error.
#include "common/recipe/acquisition.h"
#include "unit/acquisition_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {
namespace {

using namespace transitions;

struct Where {  // one kind of attempt in one situation
  bool once;
  S situation;
  auto operator<=>(const Where&) const = default;
};

// Returns the rows for this event in this situation. A correct table has exactly one.
std::vector<const Row*> rows_for(Where where, E event) {
  std::vector<const Row*> found;
  for (const Row& row : table()) {
    if (row.in != where.situation) continue;
    if (row.kind != Kind::both && (row.kind == Kind::once) != where.once) continue;
    for (const E e : row.events) {
      if (e == event) found.push_back(&row);
    }
  }
  return found;
}

Acquisition::State public_state(S s) {
  using State = Acquisition::State;
  switch (s) {
    case S::no_session:
      return State::no_session;
    case S::peeking:
      return State::peeking;
    case S::joining:
    case S::joining_again:
      return State::joining;
    case S::looking:
    case S::looking_again:
      return State::looking;
    case S::waiting_behind_one:
    case S::waiting_behind_many:
      return State::waiting;
    case S::done:
      return State::done;
    default:
      return State::pausing;
  }
}

bool ticket_may_exist(S s) {
  return s != S::no_session && s != S::peeking && s != S::pausing_to_peek;
}

// The real machine, driven by the events of the table.
class Machine {
 public:
  explicit Machine(bool once) : machine_(once) {}

  // Returns what the machine did, in the words of the table.
  std::string feed(E event) {
    const Nonce before = machine_.nonce();
    fresh_ = Nonce{static_cast<std::uint64_t>(fresh_) + 1};
    token_ += 10;
    return words(send(event), before);
  }
  const Acquisition& machine() const { return machine_; }

 private:
  static Error outage() { return {Errc::connection_failed, "no answer"}; }
  static Error refusal() { return {Errc::permission_denied, "no"}; }

  Result<Standing> standing(int ahead, std::size_t omitted = 0) const {
    Standing s;
    s.token = token_;
    for (int i = 0; i < ahead; ++i) s.view.tickets.push_back({token_ - 5, "other", std::nullopt});
    s.view.tickets.push_back({token_, "mine", machine_.nonce()});
    s.view.omitted_ahead = omitted;
    return s;
  }

  // Returns the answer for an event from joined_first (or looked_first) to ..._refusal.
  Result<Standing> answer(int which) const {
    switch (static_cast<E>(which + static_cast<int>(E::joined_first))) {
      case E::joined_behind_one:
        return standing(1);
      case E::joined_behind_many:
        return standing(1, 3);
      case E::joined_cut_off:
        return standing(0, 17);
      case E::joined_missing:
        return Standing{};
      case E::joined_outage:
        return outage();
      case E::joined_refusal:
        return refusal();
      default:
        return standing(0);
    }
  }

  Actions send(E event) {
    const int number = static_cast<int>(event);
    if (event >= E::joined_first && event <= E::joined_refusal) {
      return machine_.on_joined(answer(number - static_cast<int>(E::joined_first)), fresh_,
                                event != E::joined_first_no_lease);
    }
    if (event >= E::looked_first && event <= E::looked_refusal) {
      return machine_.on_looked(answer(number - static_cast<int>(E::looked_first)), fresh_,
                                event != E::looked_first_no_lease);
    }
    switch (event) {
      case E::session:
        return machine_.on_session(fresh_);
      case E::ended:
        return machine_.on_session_ended();
      case E::resumed:
        return machine_.on_session_resumed();
      case E::peeked_free:
        return machine_.on_peeked(false);
      case E::peeked_busy:
        return machine_.on_peeked(true);
      case E::peeked_outage:
        return machine_.on_peeked(outage());
      case E::peeked_refusal:
        return machine_.on_peeked(refusal());
      case E::gone:
        return machine_.on_predecessor(WatchEvent::gone, true);
      case E::gone_no_lease:
        return machine_.on_predecessor(WatchEvent::gone, false);
      case E::stirred:
        return machine_.on_predecessor(WatchEvent::look, true);
      case E::own_ticket:
        return machine_.on_own_ticket();
      case E::backstop:
        return machine_.on_backstop();
      case E::pause_over:
        return machine_.on_pause_over();
      default:
        return machine_.on_give_up({Errc::cancelled, "given up"});
    }
  }

  std::string words(const Actions& actions, Nonce before) const {
    std::string text;
    const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
    if (actions.withdraw) add(*actions.withdraw == before ? "withdraw" : "withdraw-another");
    if (actions.peek) add("peek");
    if (actions.join) add(machine_.nonce() == before ? "join" : "join-new");
    if (actions.look) add("look");
    if (actions.watch) add(actions.watch->id == "other" ? "watch" : "watch-another");
    if (actions.pause) add("pause");
    if (actions.grant) add("grant");
    if (actions.fail) add("fail:" + reason(*actions.fail));
    return text;
  }

  static std::string reason(const Error& error) {
    if (error.errc() == Errc::permission_denied) return "refused";
    if (error.errc() == Errc::cancelled) return "given_up";
    return error.errc() == Errc::timeout ? "timeout" : error.code().message();
  }

  Acquisition machine_;
  Nonce fresh_{100};
  std::uint64_t token_ = 50;
};

std::string text_of(Where where, E event) {
  return std::string(where.once ? "once" : "patient") + ", situation " +
         std::to_string(static_cast<int>(where.situation)) + ", event " +
         std::to_string(static_cast<int>(event));
}

// Finds a sequence of events that leads to each situation, from the table alone.
std::map<Where, Events> ways() {
  std::map<Where, Events> found{{{false, S::no_session}, {}}, {{true, S::no_session}, {}}};
  std::deque<Where> next{{false, S::no_session}, {true, S::no_session}};
  for (; !next.empty(); next.pop_front()) {
    const Where from = next.front();
    for (int e = 0; e < kEvents; ++e) {
      const auto rows = rows_for(from, static_cast<E>(e));
      if (rows.size() != 1) continue;  // EverySituationAndEventIsInTheTableOnce reports it
      const Where to{from.once, rows.front()->out};
      Events way = found.at(from);
      way.push_back(static_cast<E>(e));
      if (found.emplace(to, std::move(way)).second) next.push_back(to);
    }
  }
  return found;
}

TEST(AcquisitionTransitions, EverySituationAndEventIsInTheTableOnce) {
  int pairs = 0;
  for (const auto& [where, way] : ways()) {
    for (int e = 0; e < kEvents; ++e, ++pairs) {
      EXPECT_EQ(rows_for(where, static_cast<E>(e)).size(), 1u)
          << text_of(where, static_cast<E>(e)) << ": not in the table exactly once";
    }
  }
  RecordProperty("pairs", pairs);
}

TEST(AcquisitionTransitions, EveryRowCanHappen) {
  const auto reached = ways();
  for (const Row& row : table()) {
    for (const bool once : {false, true}) {
      if (row.kind != Kind::both && (row.kind == Kind::once) != once) continue;
      EXPECT_TRUE(reached.contains({once, row.in})) << text_of({once, row.in}, row.events.front());
    }
  }
}

// Sends two events in each situation. The second event shows that the first one left the machine in
// the situation of the table, including the part that the machine does not show.
TEST(AcquisitionTransitions, TheMachineDoesWhatTheTableSays) {
  const auto step = [](Machine& machine, Where& where, E event) {
    const auto rows = rows_for(where, event);
    if (rows.size() != 1) return ::testing::AssertionFailure() << text_of(where, event);
    const std::string did = machine.feed(event);
    const Where after{where.once, rows.front()->out};
    const Acquisition& real = machine.machine();
    if (did != rows.front()->does || real.state() != public_state(after.situation) ||
        (!real.done() && real.has_ticket() != ticket_may_exist(after.situation))) {
      return ::testing::AssertionFailure()
             << text_of(where, event) << ": did \"" << did << "\", expected \""
             << rows.front()->does << "\"; state " << static_cast<int>(real.state());
    }
    where = after;
    return ::testing::AssertionSuccess();
  };
  for (const auto& [start, way] : ways()) {
    for (int first = 0; first < kEvents; ++first) {
      for (int second = 0; second < kEvents; ++second) {
        Machine machine(start.once);
        Where where{start.once, S::no_session};
        for (const E event : way) ASSERT_TRUE(step(machine, where, event));
        ASSERT_EQ(where, start);
        ASSERT_TRUE(step(machine, where, static_cast<E>(first)));
        ASSERT_TRUE(step(machine, where, static_cast<E>(second)));
      }
    }
  }
}

}  // namespace
}  // namespace baton::internal

// What real servers do that one would not expect, as switches. A seed draws some of them.
#pragma once

#include "sim_world.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>

namespace baton::sim {

enum class Quirk : std::size_t {
  zk_seq_sticky,         // the counter of a directory ends at 2147483647 and stays there
  zk_touch_table,        // a leader hears of its followers' sessions every half tick, expiry rounds
  zk_lagging_reads,      // followers are late: they answer reads with what they know
  zk_session_moved,      // who connects again comes to another server, mostly
  zk_cut_follower,       // a follower loses its leader and goes on answering for a while
  zk_cut_leader,         // a leader loses its followers and goes on answering sync for a while
  etcd_15247,            // a leader that was stopped takes away leases when it runs again
  etcd_watch_lost,       // a watch that never tells
  etcd_compaction,       // history goes, and watches with it
  etcd_ttl_reset,        // elections: all leases begin anew
  etcd_token_expiry,     // users have to prove who they are, again and again
  etcd_future_revision,  // members lag behind: what is asked has not happened there
  etcd_doubled_events,   // what was told is told again
  etcd_late_txn,         // what was given up long ago is carried out
  etcd_set_back,         // the store is restored from a backup
  count_,
};

inline constexpr std::array kQuirkNames = {
    "zk_seq_sticky",       "zk_touch_table", "zk_lagging_reads",  "zk_session_moved",
    "zk_cut_follower",     "zk_cut_leader",  "etcd_15247",        "etcd_watch_lost",
    "etcd_compaction",     "etcd_ttl_reset", "etcd_token_expiry", "etcd_future_revision",
    "etcd_doubled_events", "etcd_late_txn",  "etcd_set_back"};
static_assert(kQuirkNames.size() == static_cast<std::size_t>(Quirk::count_));

class Quirks {
 public:
  bool on(Quirk quirk) const { return on_.test(static_cast<std::size_t>(quirk)); }
  void set(Quirk quirk, bool on = true) { on_.set(static_cast<std::size_t>(quirk), on); }

  // Those of the store whose name the prefix is. Some make a run about nothing else: they are rare.
  static Quirks draw(World& world, std::string_view prefix) {
    Quirks drawn;
    for (std::size_t i = 0; i < kQuirkNames.size(); ++i) {
      const auto quirk = static_cast<Quirk>(i);
      const bool rare = quirk == Quirk::zk_seq_sticky || quirk == Quirk::etcd_15247 ||
                        quirk == Quirk::etcd_set_back;
      const bool on = world.chance(rare ? 0.15 : 0.6);
      if (on && std::string_view(kQuirkNames[i]).starts_with(prefix)) drawn.set(quirk);
    }
    return drawn;
  }
  // "zk_seq_sticky,zk_cut_leader"; names that are not known are left out.
  static Quirks parse(std::string_view names) {
    Quirks made;
    for (std::size_t i = 0; i < kQuirkNames.size(); ++i) {
      const std::string all = "," + std::string(names) + ",";
      if (all.find("," + std::string(kQuirkNames[i]) + ",") != std::string::npos) {
        made.set(static_cast<Quirk>(i));
      }
    }
    return made;
  }
  std::string text() const {
    std::string all;
    for (std::size_t i = 0; i < kQuirkNames.size(); ++i) {
      if (on_.test(i)) all += std::string(all.empty() ? "" : ",") + kQuirkNames[i];
    }
    return all;
  }

 private:
  std::bitset<static_cast<std::size_t>(Quirk::count_)> on_;
};

}  // namespace baton::sim

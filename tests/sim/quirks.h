// Unexpected behaviour of real servers, as switches. A seed turns some of them on.
#pragma once

#include "sim_world.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>

namespace baton::sim {

enum class Quirk : std::size_t {
  zk_seq_sticky,  // the sequence counter of a directory stops at 2147483647
  // The leader learns of its followers' sessions every half tick; expiry rounds up.
  zk_touch_table,
  zk_lagging_reads,      // followers apply changes late and answer reads from their old state
  zk_session_moved,      // a client that reconnects may go to any server
  zk_cut_follower,       // a follower loses its leader and still answers for a while
  zk_cut_leader,         // a leader loses its followers and still answers sync for a while
  etcd_15247,            // a stopped leader ends leases when it runs again (etcd issue 15247)
  etcd_watch_lost,       // a watch never reports its event
  etcd_compaction,       // old revisions are compacted, and watches on them are cancelled
  etcd_ttl_reset,        // an election starts the time of all leases anew
  etcd_token_expiry,     // authentication tokens expire, and clients need new ones
  etcd_future_revision,  // a member lags behind and does not have the requested revision yet
  etcd_doubled_events,   // watch events are sent twice
  etcd_late_txn,         // a transaction is carried out long after the client gave it up
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

  // Draws some quirks whose names begin with `prefix`. Some quirks dominate a run, so they are
  // rare.
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
  // Parses a list such as "zk_seq_sticky,zk_cut_leader". Unknown names are ignored.
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

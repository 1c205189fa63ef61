// The seeded bugs that lie in what a session does or answers.
#pragma once

#include "common/base/loop.h"
#include "common/seam/session.h"
#include "sim_store.h"

#include <map>
#include <memory>
#include <set>
#include <string>

namespace baton::sim {

// What the seeded bugs know of a client, across its sessions.
struct SeededNotes {
  int client = 0;
  std::set<internal::Nonce> granted;  // in this session
  std::set<internal::Nonce> lost;
  // Entry ids of tickets of the previous session, by lock: neither granted nor withdrawn.
  std::map<internal::LockName, std::set<std::string>> left_waiting;
};

// Returns a session with the active seeded bug around this session, or this session if the active
// bug lies elsewhere. The notes and the store outlive the session.
std::unique_ptr<internal::Session> with_seeded_bug(std::unique_ptr<internal::Session> session,
                                                   internal::Loop& loop, SeededNotes& notes,
                                                   SimStore& store);

// Parts of with_seeded_bug(), which calls them.
std::unique_ptr<internal::Session> with_seeded_ticket_bug(
    std::unique_ptr<internal::Session> session, SeededNotes& notes);
std::unique_ptr<internal::Session> with_seeded_zk_bug(std::unique_ptr<internal::Session> session,
                                                      const SeededNotes& notes);

}  // namespace baton::sim

// SessionContext: what the parts of a session share.
#pragma once

#include "common/base/lifetime.h"
#include "common/seam/lock_name.h"
#include "etcd/link.h"
#include "etcd/path.h"
#include "etcd/retries.h"

#include <chrono>
#include <string>

namespace baton::etcd {

struct SessionParts {
  LinkParts link;
  std::string root;  // "" or "/app"
  std::string label;
  std::chrono::milliseconds session_timeout;
  // How long the calls of operators are retried. After this time no caller waits for the answer.
  std::chrono::milliseconds patience{60'000};
};

// Everything here belongs to the session, and outlives its parts.
struct SessionContext {
  const SessionParts& parts;
  const Lifetime& lifetime;  // of the session: its parts live exactly as long
  Loop& loop;
  Link& link;
  Retries& retries;

  std::string prefix(const LockName& name) const { return lock_prefix(parts.root, name.text()); }
};

}  // namespace baton::etcd

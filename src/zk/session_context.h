// SessionContext: what the classes of one session share. All of it lives as long as the session.
#pragma once

#include "zk/outbox.h"
#include "zk/path.h"
#include "zk/retry_timers.h"
#include "zk/session_parts.h"

#include <string>
#include <string_view>

namespace baton::zk {

struct SessionContext {
  const SessionParts& parts;
  Outbox& outbox;
  RetryTimers& retries;

  // The directory of a lock, and the path of a node in it.
  std::string directory(const LockName& name) const {
    return lock_directory(parts.root, name.text());
  }
  std::string path(const LockName& name, std::string_view node) const {
    return directory(name) + "/" + std::string(node);
  }
};

}  // namespace baton::zk

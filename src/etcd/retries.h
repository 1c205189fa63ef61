// Retries: runs tasks after a pause, while the session exists.
#pragma once

#include "etcd/namespace.h"

#include "common/base/loop.h"

#include <set>

namespace baton::etcd {

class Retries {
 public:
  explicit Retries(Loop& loop) : loop_(loop) {}
  ~Retries();
  Retries(const Retries&) = delete;
  Retries& operator=(const Retries&) = delete;

  void later(Task task);

 private:
  Loop& loop_;
  std::set<TimerId> timers_;
};

}  // namespace baton::etcd

// LockList: lists all locks. It reads the tree of directories below the root.
#pragma once

#include "zk/questions.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::zk {

class LockList {
 public:
  LockList(const SessionContext& context, Questions& questions)
      : context_(context), questions_(questions) {}
  LockList(const LockList&) = delete;
  LockList& operator=(const LockList&) = delete;

  // until: the caller's deadline; kNever: it has none.
  void list(std::string_view prefix, Time until, Answer<std::vector<std::string>> answer);

 private:
  struct Walk;
  void walk_from_root(const std::shared_ptr<Walk>& walk);
  void walk_on(const std::shared_ptr<Walk>& walk);
  void walk_into(const std::shared_ptr<Walk>& walk, const std::string& name);

  const SessionContext& context_;
  Questions& questions_;
};

}  // namespace baton::zk

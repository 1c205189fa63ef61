// TokenBase: reads and writes the token base record, a permanent node below the root.
#pragma once

#include "zk/lock_list.h"

#include <cstdint>

namespace baton::zk {

class TokenBase {
 public:
  TokenBase(const SessionContext& context, LockList& locks) : context_(context), locks_(locks) {}
  TokenBase(const TokenBase&) = delete;
  TokenBase& operator=(const TokenBase&) = delete;

  // Answers with the recorded base, or 0 if there is none. If there is no record and `wanted` is
  // not 0, records it first; that is an error if the root already contains locks.
  void settle(std::uint64_t wanted, Answer<std::uint64_t> answer);

 private:
  void record(std::uint64_t wanted, Answer<std::uint64_t> answer);

  const SessionContext& context_;
  LockList& locks_;
};

}  // namespace baton::zk

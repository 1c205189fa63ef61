// MutexImpl: the client and the lock name that copies of a DistributedMutex share.
#pragma once

#include "common/client/client_impl.h"
#include "common/seam/ticket.h"

#include <memory>

namespace baton::internal {

class MutexImpl {
 public:
  MutexImpl(std::shared_ptr<ClientImpl> client, LockName name)
      : client_(std::move(client)), name_(std::move(name)) {}
  ClientImpl& client() const noexcept { return *client_; }
  const LockName& name() const noexcept { return name_; }

 private:
  std::shared_ptr<ClientImpl> client_;
  LockName name_;
};

}  // namespace baton::internal

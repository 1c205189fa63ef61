// Opens the memory store: queues inside this process, which clients share by the store's name.
#pragma once

#include "memory/namespace.h"

#include "common/seam/session.h"

#include <memory>
#include <string>

namespace baton::memory {

Result<std::unique_ptr<internal::Backend>> make_backend(const std::string& name,
                                                        const BackendOptions& options);

}  // namespace baton::memory

// The memory store: queues inside this process, shared by name.
#pragma once

#include "common/seam/session.h"

#include <memory>
#include <string>

namespace baton::internal {

Result<std::unique_ptr<Backend>> make_memory_backend(const std::string& name,
                                                     const BackendOptions& options);

}  // namespace baton::internal

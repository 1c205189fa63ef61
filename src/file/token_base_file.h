// The record of the token base in a file store: dir/token_base. Older versions of baton leave it
// alone.
#pragma once

#include "file/store_dir.h"

#include <cstdint>
#include <optional>

namespace baton::file {

// What the store records; nothing: no record. Once this has returned a base, the record survives a
// power cut. Throws Error; a record that cannot be read is Error(store_error).
std::optional<std::uint64_t> find_token_base(const StoreDir& store);

// Records a base unless there is a record: the first one wins. Throws Error.
void record_token_base(const StoreDir& store, std::uint64_t base);

}  // namespace baton::file

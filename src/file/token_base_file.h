// Reads and writes the record of the token base in a file store: dir/token_base. Older versions of
// baton ignore this file.
#pragma once

#include "file/store_dir.h"

#include <cstdint>
#include <optional>

namespace baton::file {

// The recorded token base; nothing: there is no record. Once this has returned a base, the record
// survives a power cut. Throws Error; a record that cannot be parsed is Error(store_error).
std::optional<std::uint64_t> find_token_base(const StoreDir& store);

// Records a base. An existing record stays: the first one wins. Throws Error.
void record_token_base(const StoreDir& store, std::uint64_t base);

}  // namespace baton::file

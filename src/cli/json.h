// Makes the JSON that the commands print with --json.
#pragma once

#include <baton/client.h>

#include <nlohmann/json.hpp>

#include <string>

namespace baton::cli {

using Json = nlohmann::ordered_json;

// {"name":…,"entries":[{"id":…,"label":…,"token":…,"since":…}]}; since is null when unknown.
Json to_json(const LockSnapshot& snapshot);

// One line. Bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string dump(const Json& json);

}  // namespace baton::cli

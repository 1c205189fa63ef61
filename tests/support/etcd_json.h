// How etcd's JSON gateway encodes its messages. Only for etcd_store.cpp and etcd_users.cpp.
#pragma once

#include "support/base64.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace baton::test::etcd_json {

using Json = nlohmann::json;

// The gateway writes 64-bit numbers as strings and leaves out fields that are zero.
inline std::int64_t number(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return 0;
  return found->is_string() ? std::stoll(found->get<std::string>()) : found->get<std::int64_t>();
}

inline std::uint64_t id(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? 0 : std::stoull(found->get<std::string>());
}

inline std::string bytes(const Json& json, const char* name) {
  return from_base64(json.value(name, std::string()));
}

inline std::int64_t revision_of(const Json& json) { return number(json.at("header"), "revision"); }

// The first key after all keys with this prefix. "\0": there is none.
inline std::string end_of(std::string prefix) {
  while (!prefix.empty()) {
    if (static_cast<unsigned char>(prefix.back()) < 0xff) {
      ++prefix.back();
      return prefix;
    }
    prefix.pop_back();
  }
  return std::string(1, '\0');
}

// The empty prefix means all keys, which begin at "\0", because no key is empty.
inline std::string start_of(const std::string& prefix) {
  return prefix.empty() ? std::string(1, '\0') : prefix;
}

inline std::string between(const std::string& key, const std::string& end) {
  Json json{{"key", to_base64(key)}};
  if (!end.empty()) json["range_end"] = to_base64(end);
  return json.dump();
}

}  // namespace baton::test::etcd_json

#include "json.h"

#include <chrono>

#include "text.h"

namespace baton::cli {

Json to_json(const LockSnapshot& snapshot) {
  Json entries = Json::array();
  for (const Entry& entry : snapshot.entries) {
    Json item;
    item["id"] = entry.id;
    item["label"] = entry.label;
    item["token"] = entry.token;
    item["since"] = entry.since == std::chrono::system_clock::time_point{}
                        ? Json(nullptr)
                        : Json(format_utc(entry.since));
    entries.push_back(std::move(item));
  }
  Json out;
  out["name"] = snapshot.name;
  out["entries"] = std::move(entries);
  return out;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton::cli

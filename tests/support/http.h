// One request over plain HTTP.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

struct HttpQuestion {
  std::string path;  // "/metrics"
  std::string body;  // empty: GET; otherwise POST
  std::vector<std::string> headers;
};

// Opens a new connection for the request. nullopt: no complete answer in time, for example from a
// server that is down or paused.
std::optional<HttpAnswer> http(const std::string& server, const HttpQuestion& question,
                               std::chrono::milliseconds limit = std::chrono::seconds(2));

}  // namespace baton::test

#include "support/http.h"

#include "support/dial.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

namespace baton::test {
namespace {

// The value of Content-Length. nullopt: the body ends where the connection ends.
std::optional<std::size_t> length_in(const std::string& head) {
  std::istringstream lines(head);
  for (std::string line; std::getline(lines, line);) {
    std::transform(line.begin(), line.end(), line.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::string_view kName = "content-length:";
    if (line.starts_with(kName)) return std::strtoul(line.c_str() + kName.size(), nullptr, 10);
  }
  return std::nullopt;
}

}  // namespace

std::optional<HttpAnswer> http(const std::string& server, const HttpQuestion& question,
                               std::chrono::milliseconds limit) {
  // HTTP/1.0: the answer is not chunked, and the connection ends after it.
  std::string text = (question.body.empty() ? "GET " : "POST ") + question.path + " HTTP/1.0\r\n" +
                     "Host: " + server + "\r\n";
  for (const auto& header : question.headers) text += header + "\r\n";
  if (!question.body.empty()) {
    text += "Content-Length: " + std::to_string(question.body.size()) + "\r\n";
  }
  text += "\r\n" + question.body;

  Dial dial(server, limit);
  if (!dial.send(text)) return std::nullopt;
  std::string all;
  for (;;) {
    const auto more = dial.some();
    if (!more) return std::nullopt;
    all += *more;
    const auto end = all.find("\r\n\r\n");
    if (end != all.npos) {
      // Does not wait for the end of the connection, because some ports of etcd leave it open for a
      // while.
      const auto length = length_in(all.substr(0, end));
      const std::size_t size = all.size() - end - 4;
      if (length ? size >= *length : more->empty()) {
        return HttpAnswer{std::atoi(all.c_str() + std::string_view("HTTP/1.x ").size()),
                          all.substr(end + 4)};
      }
    }
    if (more->empty()) return std::nullopt;
  }
}

}  // namespace baton::test

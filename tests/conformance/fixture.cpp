#include "conformance/fixture.h"

#include <algorithm>
#include <cstdio>

namespace baton::conformance {

void Conformance::TearDown() {
  if (rig_ && !IsSkipped()) {
    EXPECT_TRUE(soon("no lock has an entry after the test", [&] { return rig_->locks() == 0; }));
  }
  if (HasFailure()) {
    const auto lines = log_.lines();
    const std::size_t from = lines.size() > 40 ? lines.size() - 40 : 0;
    for (std::size_t i = from; i < lines.size(); ++i) {
      std::printf("  log %d %s\n", static_cast<int>(lines[i].first), lines[i].second.c_str());
    }
  }
  rig_.reset();
}

ClientOptions Conformance::options() const {
  ClientOptions o;
  o.log = log_.sink();
  o.connect_timeout = 20s;  // long, because a busy machine may answer late
  return o;
}

Client Conformance::open(std::string label) {
  auto o = options();
  o.label = std::move(label);
  return rig_->open(std::move(o));
}

Client Conformance::open(ClientOptions o) {
  if (!o.log) o.log = log_.sink();
  return rig_->open(std::move(o));
}

::testing::AssertionResult Conformance::in_line(std::string_view name, std::size_t n) {
  std::size_t last = 0;
  auto result = soon("entries in line", [&] { return (last = entries(name)) == n; });
  if (!result) result << " of " << name << ": wanted " << n << ", last saw " << last;
  return result;
}

bool Conformance::evict(std::string_view name, std::uint64_t token, Client& as) {
  const auto snapshot = as.inspect(name);
  const auto it = std::find_if(snapshot.entries.begin(), snapshot.entries.end(),
                               [&](const Entry& e) { return e.token == token; });
  return it != snapshot.entries.end() && as.evict(name, it->id);
}

}  // namespace baton::conformance

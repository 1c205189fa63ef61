#include "zk/log.h"

#include "common/base/fork_guard.h"
#include "common/base/mutex.h"

#include <string_view>

namespace baton::zk {

namespace {
struct Complaint {
  Mutex mutex;
  std::string text BATON_GUARDED_BY(mutex);
};
// Never destroyed: the C client's threads may outlive this library's objects.
Complaint& complaint() { return per_process<Complaint>(); }
}  // namespace

// A line has the form "date:pid(tid):ZOO_ERROR@function@line: text".
void on_client_log(const char* line) {
  const std::string_view text(line);
  auto at = text.find("ZOO_ERROR@");
  if (at == std::string_view::npos) at = text.find("ZOO_WARN@");
  if (at == std::string_view::npos) return;
  const auto colon = text.find(": ", at);
  if (colon == std::string_view::npos) return;
  if (text.find("Delaying connection", colon) != std::string_view::npos) return;  // not an error
  Complaint& last = complaint();
  const MutexLock guard(last.mutex);
  last.text = text.substr(colon + 2, 300);
}

std::string last_complaint() {
  Complaint& last = complaint();
  const MutexLock guard(last.mutex);
  return last.text;
}

void forget_complaint() {
  Complaint& last = complaint();
  const MutexLock guard(last.mutex);
  last.text.clear();
}

}  // namespace baton::zk

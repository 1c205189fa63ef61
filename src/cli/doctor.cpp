// doctor: checks that the store answers, measures how fast it is, and warns of known problems.
#include <baton/baton.h>

#include <pwd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "commands.h"
#include "errors.h"
#include "json.h"
#include "server_bugs.h"
#include "store.h"
#include "text.h"
#include "zk_server.h"

namespace baton::cli {

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr int kRounds = 9;
constexpr std::chrono::seconds kProbeLimit{10};

std::string probe_name() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  const std::string name = std::string(host).substr(0, 60) + "-" + std::to_string(getpid());
  return "baton-doctor/" + encode_name(name);
}

template <class F>
nanoseconds median_time(F&& action) {
  std::vector<nanoseconds> times;
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = steady_clock::now();
    action();
    times.push_back(steady_clock::now() - begin);
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

std::string file_system_name(const std::string& directory) {
  static const std::map<std::uint64_t, const char*> kNames = {
      {0xef53, "ext4"},        {0x58465342, "xfs"},  {0x9123683e, "btrfs"},
      {0x01021994, "tmpfs"},   {0x2fc12fc1, "zfs"},  {0x794c7630, "overlayfs"},
      {0x6969, "nfs"},         {0xff534d42, "cifs"}, {0xfe534d42, "smb2"},
      {0x65735546, "fuse"},    {0x00c36400, "ceph"}, {0xf2f52010, "f2fs"},
      {0xca451a4e, "bcachefs"}};
  struct statfs info {};
  if (statfs(directory.c_str(), &info) != 0) return "unknown";
  const auto type = static_cast<std::uint64_t>(info.f_type) & 0xffffffffU;
  const auto found = kNames.find(type);
  if (found != kNames.end()) return found->second;
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(type));
  return text;
}

std::string user_name(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::string buffer(16'384, '\0');
  getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? found->pw_name : std::to_string(uid);
}

long long read_limit(const char* name) {
  std::ifstream file(std::string("/proc/sys/fs/inotify/") + name);
  long long value = -1;
  file >> value;
  return value;
}

void examine_directory(const std::string& directory, Json& report, Json& warnings) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0) return;
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777));
  report["directory_mode"] = mode;
  report["directory_owner"] = user_name(info.st_uid);
  report["file_system"] = file_system_name(directory);
  report["inotify_instances"] = read_limit("max_user_instances");
  report["inotify_watches"] = read_limit("max_user_watches");
  if ((info.st_mode & 0022) != 0 && (info.st_mode & S_ISVTX) == 0) {
    warnings.push_back("other users can write to the directory and remove locks that are held");
  }
}

Json examine(Client& client) {
  const std::string name = probe_name();
  DistributedMutex mutex = client.mutex(name);
  const nanoseconds look = median_time([&] { client.inspect(name); });
  const nanoseconds cycle = median_time([&] { mutex.acquire_for(kProbeLimit).release(); });

  const SessionInfo session = client.session();
  Json report;
  Json warnings = Json::array();
  report["backend"] = session.backend;
  report["endpoint"] = session.endpoint;
  std::string version = session.server_version;
  if (session.backend == "zk") {
    const ZkServerFacts server = ask_zk_server(session.endpoint);
    version = server.version;
    if (!server.mode.empty()) report["server_mode"] = server.mode;
    if (version.empty()) {
      warnings.push_back(
          "the server does not answer \"srvr\", so its version is unknown; allow it with "
          "4lw.commands.whitelist");
    }
  }
  report["server_version"] = version.empty() ? Json(nullptr) : Json(version);
  const bool lease = session.timeout != std::chrono::milliseconds::max();
  report["session_timeout_ms"] = lease ? Json(session.timeout.count()) : Json(nullptr);
  report["token_base"] = session.token_base;
  report["inspect_us"] = look.count() / 1000;
  report["acquire_release_us"] = cycle.count() / 1000;
  for (const std::string& bug : known_bugs(session.backend, version)) {
    warnings.push_back(std::string("server ").append(version).append(": ").append(bug));
  }
  if (session.backend == "file") examine_directory(session.endpoint, report, warnings);
  report["warnings"] = std::move(warnings);
  return report;
}

std::string for_people(const Json& report) {
  const auto text = [&](const char* key) {
    if (!report.contains(key) || report[key].is_null()) return std::string("none");
    return report[key].is_string() ? escape_controls(report[key].get<std::string>())
                                   : report[key].dump();
  };
  const auto time = [&](const char* key) {
    return format_round_trip(std::chrono::microseconds(report[key].get<long long>()));
  };
  std::vector<std::vector<std::string>> rows{
      {"backend", text("backend")},
      {"endpoint", text("endpoint")},
      {"server version",
       text("server_version") +
           (report.contains("server_mode") ? ", " + text("server_mode") : std::string())},
      {"session timeout", report["session_timeout_ms"].is_null()
                              ? "none: the lock of a dead holder is free at once"
                              : format_duration(std::chrono::milliseconds(
                                    report["session_timeout_ms"].get<long long>()))},
      {"token base", text("token_base")},
      {"inspect", time("inspect_us")},
      {"acquire + release", time("acquire_release_us")}};
  if (report.contains("directory_mode")) {
    rows.push_back({"directory", text("directory_mode") + ", owner " + text("directory_owner")});
    rows.push_back({"file system", text("file_system")});
    rows.push_back({"inotify limits", text("inotify_instances") + " instances, " +
                                          text("inotify_watches") + " watches per user"});
  }
  std::string out = format_table(rows);
  for (const Json& warning : report["warnings"]) {
    out += "warning: " + escape_controls(warning.get<std::string>()) + "\n";
  }
  return out + (report["warnings"].empty() ? "no problems found\n" : "");
}

}  // namespace

int doctor_command(const Args& args) {
  Client client = connect(args);
  const Json report = examine(client);
  print(args.json ? dump(report) + "\n" : for_people(report));
  return kOk;
}

}  // namespace baton::cli

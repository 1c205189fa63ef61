// A session of the C client, as a tool of an operator would open it: with its own credentials, and
// with a view of the permissions of nodes.
#pragma once

#include "support/eventually.h"

#ifndef THREADED
#define THREADED  // for the blocking calls
#endif
#include <zookeeper/zookeeper.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace baton::chaos {

class RawZk {
 public:
  // digest: "user:password"; empty: no credentials. Returns when it is connected.
  explicit RawZk(const std::string& hosts, const std::string& digest = "") {
    // Its log is discarded. The log level belongs to the whole process and is not changed.
    handle_ =
        ::zookeeper_init2(hosts.c_str(), on_event, 10'000, nullptr, this, 0, [](const char*) {});
    if (handle_ == nullptr ||
        !test::eventually("a session at " + hosts, [this] { return connected_.load(); })) {
      throw std::runtime_error("no session at " + hosts);
    }
    if (digest.empty()) return;
    ::zoo_add_auth(handle_, "digest", digest.data(), static_cast<int>(digest.size()), nullptr,
                   nullptr);
  }
  ~RawZk() { ::zookeeper_close(handle_); }
  RawZk(const RawZk&) = delete;
  RawZk& operator=(const RawZk&) = delete;

  // These calls return the code of the C client.
  int create(const std::string& path, int flags = 0) {
    return ::zoo_create(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, flags, nullptr, 0);
  }
  int remove(const std::string& path) { return ::zoo_delete(handle_, path.c_str(), -1); }
  int exists(const std::string& path) { return ::zoo_exists(handle_, path.c_str(), 0, nullptr); }
  int get(const std::string& path) {
    char buffer[1024];
    int size = sizeof buffer;
    return ::zoo_get(handle_, path.c_str(), 0, buffer, &size, nullptr);
  }
  int children(const std::string& path, std::vector<std::string>& names) {
    String_vector all{};
    const int code = ::zoo_get_children(handle_, path.c_str(), 0, &all);
    if (code != ZOK) return code;
    names.assign(all.data, all.data + all.count);
    ::deallocate_String_vector(&all);
    return code;
  }

  // The permissions of a node: "digest:app:HASH=31", 1 read, 2 write, 4 create, 8 delete, 16
  // administer.
  std::set<std::string> rights(const std::string& path) {
    ACL_vector all{};
    Stat stat{};
    const int code = ::zoo_get_acl(handle_, path.c_str(), &all, &stat);
    if (code != ZOK) return {::zerror(code)};
    std::set<std::string> found;
    for (std::int32_t i = 0; i < all.count; ++i) {
      const ACL& one = all.data[i];
      found.insert(std::string(one.id.scheme) + ":" + one.id.id + "=" + std::to_string(one.perms));
    }
    ::deallocate_ACL_vector(&all);
    return found;
  }

 private:
  static void on_event(zhandle_t*, int type, int state, const char*, void* context) {
    if (type != ZOO_SESSION_EVENT) return;
    static_cast<RawZk*>(context)->connected_ = state == ZOO_CONNECTED_STATE;
  }

  std::atomic<bool> connected_{false};
  zhandle_t* handle_ = nullptr;
};

}  // namespace baton::chaos

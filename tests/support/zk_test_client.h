// A session of the C client, for the tests of the test servers.
#pragma once

#include "support/eventually.h"

#ifndef THREADED
#define THREADED  // enables the synchronous calls
#endif
#include <zookeeper/zookeeper.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace baton::test {

class ZkTestClient {
 public:
  // Returns when connected.
  explicit ZkTestClient(const std::string& hosts, std::chrono::milliseconds timeout = 4s) {
    ::zoo_set_debug_level(static_cast<ZooLogLevel>(0));  // otherwise the library logs each fault
    handle_ = ::zookeeper_init(hosts.c_str(), on_event, static_cast<int>(timeout.count()), nullptr,
                               this, 0);
    if (handle_ == nullptr || !eventually("a session at " + hosts, [&] { return connected(); })) {
      if (handle_ != nullptr) ::zookeeper_close(handle_);  // otherwise its session stays
      throw std::runtime_error("no session at " + hosts);
    }
  }
  ~ZkTestClient() { ::zookeeper_close(handle_); }
  ZkTestClient(const ZkTestClient&) = delete;
  ZkTestClient& operator=(const ZkTestClient&) = delete;

  std::int64_t session() const { return ::zoo_client_id(handle_)->client_id; }
  bool connected() const { return state_ == ZOO_CONNECTED_STATE; }
  bool expired() const { return state_ == ZOO_EXPIRED_SESSION_STATE; }
  int disconnects() const { return disconnects_; }

  // All calls below return the code of the client library.
  int create(const std::string& path, const std::string& data = "", int flags = 0) {
    return ::zoo_create(handle_, path.c_str(), data.data(), static_cast<int>(data.size()),
                        &ZOO_OPEN_ACL_UNSAFE, flags, nullptr, 0);
  }
  // Creates an ephemeral sequential node; `made`: its path.
  int create_numbered(const std::string& path, std::string& made) {
    char buffer[1024];
    const int code =
        ::zoo_create(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                     ZOO_EPHEMERAL | ZOO_SEQUENCE, buffer, static_cast<int>(sizeof buffer));
    if (code == ZOK) made = buffer;
    return code;
  }
  int remove(const std::string& path) { return ::zoo_delete(handle_, path.c_str(), -1); }
  int exists(const std::string& path) { return ::zoo_exists(handle_, path.c_str(), 0, nullptr); }
  int get(const std::string& path, std::string& data, bool watch = false) {
    char buffer[1024];
    int size = sizeof buffer;
    const int code = ::zoo_get(handle_, path.c_str(), watch ? 1 : 0, buffer, &size, nullptr);
    if (code == ZOK) data.assign(buffer, static_cast<std::size_t>(size));
    return code;
  }
  // Sends the request and does not wait for the answer.
  int create_later(const std::string& path) {
    return ::zoo_acreate(
        handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, [](int, const char*, const void*) {},
        nullptr);
  }

 private:
  static void on_event(zhandle_t*, int type, int state, const char*, void* context) {
    if (type != ZOO_SESSION_EVENT) return;
    auto* self = static_cast<ZkTestClient*>(context);
    if (state == ZOO_CONNECTING_STATE) ++self->disconnects_;
    self->state_ = state;
  }

  std::atomic<int> state_{0};
  std::atomic<int> disconnects_{0};
  zhandle_t* handle_ = nullptr;
};

}  // namespace baton::test

#include "zk/status.h"

#include <zookeeper/zookeeper.h>

namespace baton::internal {

namespace {
constexpr int kThrottled = -127;  // ZTHROTTLEDOP; older headers have no name for it
}

ZkStatus zk_status(int code) noexcept {
  switch (code) {
    case ZOK:
      return ZkStatus::ok;
    case ZNONODE:
      return ZkStatus::no_node;
    case ZNODEEXISTS:
      return ZkStatus::node_exists;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZSESSIONMOVED:          // the old connection of a session that has moved on
    case ZRUNTIMEINCONSISTENCY:  // an answer out of step: the connection is given up
    case ZCLOSING:
    case ZINVALIDSTATE:
    case ZNOTREADONLY:
    case ZMARSHALLINGERROR:  // an answer that could not be read: it may have happened
    case ZSYSTEMERROR:
    case kThrottled:
      return ZkStatus::lost;
    case ZSESSIONEXPIRED:
      return ZkStatus::expired;
    case ZNOAUTH:
    case ZINVALIDACL:
      return ZkStatus::no_auth;
    case ZAUTHFAILED:
      return ZkStatus::auth_failed;
    case ZUNIMPLEMENTED:
      return ZkStatus::unimplemented;
    case ZNOCHILDRENFOREPHEMERALS:
      return ZkStatus::ephemeral_parent;
    default:
      return ZkStatus::failed;
  }
}

std::string zk_text(int code) {
  const char* text = zerror(code);
  return std::string(text == nullptr ? "unknown error" : text) + " (" + std::to_string(code) + ")";
}

Error zk_error(ZkStatus status, int code, std::string_view what) {
  const std::string text = std::string(what) + ": " + zk_text(code);
  switch (status) {
    case ZkStatus::lost:
      return {Errc::connection_failed, text};
    case ZkStatus::expired:
      return {Errc::session_expired, text};
    case ZkStatus::no_auth:
    case ZkStatus::auth_failed:
      return {Errc::permission_denied, text + "; check the credentials and the node's ACL"};
    case ZkStatus::unimplemented:
      return {Errc::unsupported, text + "; baton needs ZooKeeper 3.5 or later"};
    case ZkStatus::ephemeral_parent:
      return {Errc::store_error,
              text + "; a node on the path is somebody's entry, not a directory"};
    case ZkStatus::ok:
    case ZkStatus::no_node:
    case ZkStatus::node_exists:
    case ZkStatus::failed:
      break;
  }
  return {Errc::store_error, text};
}

}  // namespace baton::internal

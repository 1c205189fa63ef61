#include "zk/status.h"

#include <zookeeper/zookeeper.h>

namespace baton::zk {

namespace {
constexpr int kThrottled = -127;  // ZTHROTTLEDOP; older headers have no name for it
}

Status status_of(int code) noexcept {
  switch (code) {
    case ZOK:
      return Status::ok;
    case ZNONODE:
      return Status::no_node;
    case ZNODEEXISTS:
      return Status::node_exists;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZSESSIONMOVED:          // the session has moved to another connection
    case ZRUNTIMEINCONSISTENCY:  // an answer out of order: the C client reconnects
    case ZCLOSING:
    case ZINVALIDSTATE:
    case ZNOTREADONLY:
    case ZMARSHALLINGERROR:  // the answer could not be decoded: it may have happened
    case ZSYSTEMERROR:
    case kThrottled:
      return Status::lost;
    case ZSESSIONEXPIRED:
      return Status::expired;
    case ZNOAUTH:
    case ZINVALIDACL:
      return Status::no_auth;
    case ZAUTHFAILED:
      return Status::auth_failed;
    case ZUNIMPLEMENTED:
      return Status::unimplemented;
    case ZNOCHILDRENFOREPHEMERALS:
      return Status::ephemeral_parent;
    default:
      return Status::failed;
  }
}

std::string text_of(int code) {
  const char* text = zerror(code);
  return std::string(text == nullptr ? "unknown error" : text) + " (" + std::to_string(code) + ")";
}

Error call_error(Status status, int code, std::string_view what) {
  const std::string text = std::string(what) + ": " + text_of(code);
  switch (status) {
    case Status::lost:
      return {Errc::connection_failed, text};
    case Status::expired:
      return {Errc::session_expired, text};
    case Status::no_auth:
    case Status::auth_failed:
      return {Errc::permission_denied, text + "; check the credentials and the node's ACL"};
    case Status::unimplemented:
      return {Errc::unsupported, text + "; baton needs ZooKeeper 3.5 or later"};
    case Status::ephemeral_parent:
      return {Errc::store_error,
              text + "; a node on the path is an entry of a lock, not a directory"};
    case Status::ok:
    case Status::no_node:
    case Status::node_exists:
    case Status::failed:
      break;
  }
  return {Errc::store_error, text};
}

}  // namespace baton::zk

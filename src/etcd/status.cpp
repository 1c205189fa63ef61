#include "etcd/status.h"

namespace baton::internal {

namespace {

// gRPC's codes, as numbers: this file is pure.
enum Code {
  kOk = 0,
  kInvalidArgument = 3,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kDataLoss = 15,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

bool says(const EtcdVerdict& verdict, std::string_view text) {
  return verdict.message.find(text) != std::string::npos;
}

}  // namespace

EtcdStatus etcd_status(const EtcdVerdict& verdict) noexcept {
  switch (verdict.code) {
    case kOk:
      return EtcdStatus::ok;
    case kNotFound:
      return says(verdict, "lease") ? EtcdStatus::lease_gone : EtcdStatus::failed;
    case kOutOfRange:
      return EtcdStatus::bad_revision;
    case kUnauthenticated:
      return EtcdStatus::token_expired;
    case kPermissionDenied:
      return EtcdStatus::refused;
    case kResourceExhausted:
      // Out of space is said after a transaction was applied, too; too many requests is not.
      return says(verdict, "too many requests") ? EtcdStatus::not_sent : EtcdStatus::lost;
    case kUnavailable:
      // Refused at the door by a server that knows it has no leader ("hasleader").
      return says(verdict, "no leader") ? EtcdStatus::not_sent : EtcdStatus::lost;
    case kInvalidArgument:
      // A token from before a change of users or roles.
      if (says(verdict, "revision of auth store is old")) return EtcdStatus::token_expired;
      if (says(verdict, "user name is empty") || says(verdict, "authentication failed")) {
        return EtcdStatus::refused;
      }
      return EtcdStatus::failed;
    case kUnimplemented:
      return EtcdStatus::unimplemented;
    case kFailedPrecondition:
    case kDataLoss:
      return EtcdStatus::failed;
    default:
      return EtcdStatus::lost;  // cancelled, unknown, deadline, aborted, internal
  }
}

Error etcd_error(EtcdStatus status, const EtcdVerdict& verdict, std::string_view what) {
  const std::string text = std::string(what) + ": " +
                           (verdict.message.empty() ? "no answer in time" : verdict.message) +
                           " (gRPC status " + std::to_string(verdict.code) + ")";
  switch (status) {
    case EtcdStatus::lost:
    case EtcdStatus::not_sent:
    case EtcdStatus::bad_revision:
      return {Errc::connection_failed, text};
    case EtcdStatus::lease_gone:
      return {Errc::session_expired, text};
    case EtcdStatus::token_expired:
    case EtcdStatus::refused:
      return {Errc::permission_denied,
              text + "; check the user, the password, and the permissions of its roles"};
    case EtcdStatus::unimplemented:
      return {Errc::unsupported, text + "; baton needs etcd 3.4 or later"};
    case EtcdStatus::ok:
    case EtcdStatus::failed:
      break;
  }
  return {Errc::store_error, text};
}

}  // namespace baton::internal

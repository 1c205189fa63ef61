#include "etcd/status.h"

namespace baton::etcd {

namespace {

// gRPC's status codes. Repeated here so that this file does not depend on gRPC.
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

bool says(const CallResult& verdict, std::string_view text) {
  return verdict.message.find(text) != std::string::npos;
}

}  // namespace

Status status_of(const CallResult& verdict) noexcept {
  switch (verdict.code) {
    case kOk:
      return Status::ok;
    case kNotFound:
      return says(verdict, "lease") ? Status::lease_gone : Status::failed;
    case kOutOfRange:
      return Status::bad_revision;
    case kUnauthenticated:
      return Status::token_expired;
    case kPermissionDenied:
      return Status::refused;
    case kResourceExhausted:
      // A server can report "database space exceeded" after it has applied the transaction. It
      // reports "too many requests" only before.
      return says(verdict, "too many requests") ? Status::not_sent : Status::lost;
    case kUnavailable:
      // A server without a leader refuses a request with "hasleader" metadata before it executes
      // it.
      return says(verdict, "no leader") ? Status::not_sent : Status::lost;
    case kInvalidArgument:
      // The token was issued before a change of users or roles.
      if (says(verdict, "revision of auth store is old")) return Status::token_expired;
      if (says(verdict, "user name is empty") || says(verdict, "authentication failed")) {
        return Status::refused;
      }
      return Status::failed;
    case kUnimplemented:
      return Status::unimplemented;
    case kFailedPrecondition:
    case kDataLoss:
      return Status::failed;
    default:
      return Status::lost;  // cancelled, unknown, deadline exceeded, aborted, internal
  }
}

Error call_error(Status status, const CallResult& verdict, std::string_view what) {
  const std::string text = std::string(what) + ": " +
                           (verdict.message.empty() ? "no answer in time" : verdict.message) +
                           " (gRPC status " + std::to_string(verdict.code) + ")";
  switch (status) {
    case Status::lost:
    case Status::not_sent:
    case Status::bad_revision:
      return {Errc::connection_failed, text};
    case Status::lease_gone:
      return {Errc::session_expired, text};
    case Status::token_expired:
    case Status::refused:
      return {Errc::permission_denied,
              text + "; check the user, the password, and the permissions of its roles"};
    case Status::unimplemented:
      return {Errc::unsupported, text + "; baton needs etcd 3.4 or later"};
    case Status::ok:
    case Status::failed:
      break;
  }
  return {Errc::store_error, text};
}

}  // namespace baton::etcd

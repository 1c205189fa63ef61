#include <baton/error.h>

namespace baton {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "baton"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::timeout:
        return "timed out";
      case Errc::cancelled:
        return "cancelled";
      case Errc::closed:
        return "the client is closed";
      case Errc::connection_failed:
        return "the store cannot be reached";
      case Errc::session_expired:
        return "the store ended the session";
      case Errc::lock_lost:
        return "the lock was lost";
      case Errc::not_held:
        return "the lock is not held";
      case Errc::would_deadlock:
        return "refused, because the call could wait without end or share a hold";
      case Errc::invalid_name:
        return "not a lock name";
      case Errc::invalid_argument:
        return "invalid argument";
      case Errc::permission_denied:
        return "permission denied";
      case Errc::unsupported:
        return "not supported";
      case Errc::store_error:
        return "the store failed";
      case Errc::forked:
        return "used in a fork of the process that opened it";
      case Errc::evicted:
        return "the entry was removed by force";
      case Errc::store_changed:
        return "another store answers at this address, or the store was set back in time";
    }
    return "unknown baton error " + std::to_string(code);
  }
  // Code that knows only std::errc can compare: error.code() == std::errc::timed_out.
  std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Errc>(code)) {
      case Errc::timeout:
        return std::errc::timed_out;
      case Errc::cancelled:
        return std::errc::operation_canceled;
      case Errc::connection_failed:
        return std::errc::not_connected;
      case Errc::would_deadlock:
        return std::errc::resource_deadlock_would_occur;
      case Errc::invalid_name:
      case Errc::invalid_argument:
        return std::errc::invalid_argument;
      case Errc::permission_denied:
        return std::errc::permission_denied;
      case Errc::unsupported:
        return std::errc::not_supported;
      default:
        return {code, *this};
    }
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const auto* const category = new Category;  // NOLINT: never destroyed, used during exit
  return *category;
}

Error::Error(Errc code, const std::string& message)
    : std::system_error(make_error_code(code)), text_(message) {}

Error::~Error() = default;

const char* Error::what() const noexcept { return text_.what(); }

}  // namespace baton

// The part of EtcdStore that adds and changes users.
#include "support/base64.h"
#include "support/etcd_json.h"
#include "support/etcd_store.h"

namespace baton::test {
using namespace etcd_json;

void EtcdStore::enable_auth(const std::string& root_password) {
  ask_any({{"/v3/auth/user/add", Json{{"name", "root"}, {"password", root_password}}.dump()}});
  ask_any({{"/v3/auth/user/grant", R"({"user":"root","role":"root"})"}});
  ask_any({{"/v3/auth/enable", "{}"}});
  const std::lock_guard lock(mutex_);
  password_ = root_password;
}

void EtcdStore::add_user(const std::string& name, const std::string& password,
                         const std::string& prefix, bool read_only) {
  ask_any({{"/v3/auth/user/add", Json{{"name", name}, {"password", password}}.dump()}});
  ask_any({{"/v3/auth/role/add", Json{{"name", name}}.dump()}});
  const Json may{{"permType", read_only ? "READ" : "READWRITE"},
                 {"key", to_base64(start_of(prefix))},
                 {"range_end", to_base64(end_of(prefix))}};
  ask_any({{"/v3/auth/role/grant", Json{{"name", name}, {"perm", may}}.dump()}});
  ask_any({{"/v3/auth/user/grant", Json{{"user", name}, {"role", name}}.dump()}});
}

void EtcdStore::allow_reading(const std::string& name, const std::string& key) {
  const Json may{{"permType", "READ"}, {"key", to_base64(key)}};
  ask_any({{"/v3/auth/role/grant", Json{{"name", name}, {"perm", may}}.dump()}});
}

void EtcdStore::change_password(const std::string& name, const std::string& password) {
  ask_any({{"/v3/auth/user/changepw", Json{{"name", name}, {"password", password}}.dump()}});
  const std::lock_guard lock(mutex_);
  if (name == "root" && password_) password_ = password;
}

void EtcdStore::disable_auth() {
  ask_any({{"/v3/auth/disable", "{}"}});
  const std::lock_guard lock(mutex_);
  password_.reset();
  token_.clear();
}

}  // namespace baton::test

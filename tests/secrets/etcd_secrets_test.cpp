// Clients use etcd with users, certificates and faults. No log line, error message or output may
// contain a password, a token or a private key.
#include "hearing.h"
#include "support/canaries.h"
#include "support/etcd_server.h"
#include "wire_tap.h"

#include <atomic>
#include <regex>
#include <set>

namespace baton::test {
namespace {

using namespace std::chrono_literals;

// Finds the tokens that servers send in their answers to Authenticate.
std::set<std::string> tokens_in(const std::string& bytes) {
  static const std::regex kToken("[A-Za-z]{16}\\.[0-9]+");
  return {std::sregex_token_iterator(bytes.begin(), bytes.end(), kToken), {}};
}

TEST(EtcdSecrets, NothingSaidInALifeWithUsersGivesASecretAway) {
  ASSERT_TRUE(etcd_installed());
  EtcdCluster etcd;
  etcd.add_user("app", kAppPassword, "/app/");
  etcd.add_user("other", kOtherPassword, "/other/");
  etcd.allow_reading("other", "/app/~token_base");  // connect() reads this key
  etcd.enable_auth(kRootPassword);
  WireTap tap(etcd.client_port(0));
  const std::string url = "etcd://" + tap.host() + "/app";
  Hearing ears;
  {
    auto app = Client::connect(url, ears.options("app", kAppPassword));
    auto second = Client::connect(url, ears.by_spdlog(ears.options("app", kAppPassword)));
    auto other = Client::connect(url, ears.options("other", kOtherPassword));
    auto lock = app.mutex("job").acquire({.timeout = 20s});
    ears.hear(app);
    ears.hear(app.inspect("job"));
    for (const auto& key : etcd.keys()) ears.hear(key.key + " " + key.value);
    ears.fails([&] { (void)Client::connect(url, ears.options("app", kWrongPassword)); });
    ears.fails([&] { (void)other.mutex("job").acquire({.timeout = 20s}); });
    ears.fails([&] { (void)second.mutex("job").acquire({.timeout = 200ms}); });
    // After a change of the password etcd refuses older tokens, so clients ask for new ones.
    const auto before = tokens_in(tap.said()).size();
    etcd.change_password("app", kAppPassword);
    app.mutex("another").acquire({.timeout = 20s}).release();
    EXPECT_GT(tokens_in(tap.said()).size(), before);
    tap.cut();
    lock.verify(20s);
    // End the sessions.
    for (const auto id : etcd.leases()) etcd.revoke(id);
    EXPECT_TRUE(eventually("lost", [&] { return !lock.valid(); }));
    ears.fails([&] { lock.verify(20s); });
    second.mutex("job").acquire({.timeout = 20s}).release();

    const std::vector<std::string> who{
        "--url", url, "--user", "app", "--password-file", ears.password_file(kAppPassword)};
    const auto with = [&](std::vector<std::string> words) {
      words.insert(words.begin(), who.begin(), who.end());
      return words;
    };
    EXPECT_EQ(ears.baton(with({"doctor", "--json"})).code, 0);
    EXPECT_EQ(ears.baton(with({"ls", "--json"})).code, 0);
    auto run = with({"run", "job", "--"});
    for (const auto& word : Hearing::look_around()) run.push_back(word);
    EXPECT_NE(ears.baton(run).out.find("looked"), std::string::npos);
    EXPECT_NE(ears.baton({"--url", url, "--user", "app", "show", "job"},
                         {std::string("BATON_PASSWORD=") + kWrongPassword})
                  .code,
              0);
    ears.deaths({url, "app", ears.password_file(kAppPassword)});
    EXPECT_EQ(ears.die("refused", {url, "app", ears.password_file(kWrongPassword)}).code,
              128 + SIGABRT);
  }
  const auto text = ears.all();
  EXPECT_NE(text.find("check the user, the password"), std::string::npos) << "nothing was heard";
  const auto tokens = tokens_in(tap.said());
  EXPECT_GE(tokens.size(), 3U);
  for (const auto& token : tokens) EXPECT_EQ(trace_in(text, token), "") << "a token";
  for (const char* canary : kCanaries) EXPECT_EQ(trace_in(text, canary), "") << "a password";
}

// The lines of a private key in a file.
std::vector<std::string> lines_of(const std::string& key_file) {
  std::vector<std::string> lines;
  std::ifstream file(key_file);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("-----") && line.size() >= 16) lines.push_back(line);
  }
  return lines;
}

TEST(EtcdSecrets, NothingSaidByTheDyingGivesAPrivateKeyAway) {
  ASSERT_TRUE(etcd_installed());
  EtcdOptions options;
  options.tls = true;
  options.client_certs = true;
  EtcdCluster etcd(options);
  const auto& files = etcd.certificates();
  const std::string url = "etcds://" + etcd.host(0) + "/app";
  Hearing ears;
  ears.deaths({url, files.ca(), files.client().certificate, files.client().key});
  // A key of another client, and a certificate in place of the key.
  for (const auto& key : {files.other_client().key, files.client().certificate}) {
    EXPECT_EQ(ears.die("refused", {url, files.ca(), files.client().certificate, key}).code,
              128 + SIGABRT);
  }
  const auto text = ears.all();
  for (const auto& file : {files.client().key, files.other_client().key}) {
    const auto lines = lines_of(file);
    EXPECT_GE(lines.size(), 2U);
    for (const auto& line : lines) EXPECT_EQ(trace_in(text, line), "");
  }
  for (const char* canary : kCanaries) EXPECT_EQ(trace_in(text, canary), "");
}

}  // namespace
}  // namespace baton::test

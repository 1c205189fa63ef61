// Clients use ZooKeeper with users and faults. No log line, error message or output may contain a
// password of a user or of a session.
#include "hearing.h"
#include "support/canaries.h"
#include "support/zk_server.h"
#include "wire_tap.h"

#include <set>

namespace baton::test {
namespace {

using namespace std::chrono_literals;

// Finds the first message of the server on each connection: its length 37, version 0, timeout,
// session, the length 16, and the password of the session.
std::set<std::string> session_passwords_in(const std::string& bytes) {
  std::set<std::string> found;
  const std::string begins("\0\0\0\x25\0\0\0\0", 8);
  const std::string length("\0\0\0\x10", 4);
  for (auto at = bytes.find(begins); at != bytes.npos; at = bytes.find(begins, at + 1)) {
    if (bytes.size() < at + 40 || bytes.compare(at + 20, 4, length) != 0) continue;
    const auto password = bytes.substr(at + 24, 16);
    if (password != std::string(16, '\0')) found.insert(password);
  }
  return found;
}

TEST(ZkSecrets, NothingSaidInALifeWithUsersGivesASecretAway) {
  ASSERT_TRUE(zk_installed());
  ZkEnsemble server;
  WireTap tap(server.client_port(0));
  const std::string url = "zk://" + tap.host() + "/app";
  Hearing ears;
  {
    auto app = Client::connect(url, ears.options("app", kAppPassword));
    auto second = Client::connect(url, ears.by_spdlog(ears.options("app", kAppPassword)));
    auto other = Client::connect(url, ears.options("app", kWrongPassword));
    auto lock = app.mutex("job").acquire({.timeout = 20s});
    ears.hear(app);
    ears.hear(app.inspect("job"));
    ears.fails([&] { (void)other.mutex("job").acquire({.timeout = 20s}); });
    ears.fails([&] { (void)second.mutex("job").acquire({.timeout = 200ms}); });
    tap.cut();
    lock.verify(20s);
    // End the sessions.
    const auto sessions = parse_dump(server.four_letter(0, "dump")).ephemerals;
    for (const auto& [session, nodes] : sessions) ASSERT_TRUE(server.end_session(session));
    EXPECT_TRUE(eventually("lost", [&] { return !lock.valid(); }));
    ears.fails([&] { lock.verify(20s); });
    second.mutex("job").acquire({.timeout = 20s}).release();

    const std::vector<std::string> who{"--url",
                                       url,
                                       "--user",
                                       "app",
                                       "--plaintext-auth",
                                       "--password-file",
                                       ears.password_file(kAppPassword)};
    const auto with = [&](std::vector<std::string> words) {
      words.insert(words.begin(), who.begin(), who.end());
      return words;
    };
    EXPECT_EQ(ears.baton(with({"doctor", "--json"})).code, 0);
    EXPECT_EQ(ears.baton(with({"ls", "--json"})).code, 0);
    auto run = with({"run", "job", "--"});
    for (const auto& word : Hearing::look_around()) run.push_back(word);
    EXPECT_NE(ears.baton(run).out.find("looked"), std::string::npos);
    ears.deaths({url, "app", ears.password_file(kAppPassword)});
    EXPECT_EQ(ears.die("refused", {url, "app", ears.password_file(kWrongPassword)}).code,
              128 + SIGABRT);
  }
  const auto text = ears.all();
  EXPECT_GT(text.size(), 500U) << "nothing was heard";
  const auto passwords = session_passwords_in(tap.said());
  EXPECT_GE(passwords.size(), 3U);
  for (const auto& password : passwords) EXPECT_EQ(trace_in(text, password), "") << "a session's";
  for (const char* canary : kCanaries) EXPECT_EQ(trace_in(text, canary), "") << "a password";
}

}  // namespace
}  // namespace baton::test

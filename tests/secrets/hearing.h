// Hearing: collects all text that clients and commands with secrets write. That is log lines of
// every level, error messages, and the output of commands.
#pragma once

#include "support/eventually.h"
#include "support/log_capture.h"
#include "support/run.h"
#include "support/secret_search.h"
#include "support/temp_dir.h"

#include <baton/baton.h>
#include <baton/spdlog.h>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace baton::test {

class Hearing {
 public:
  Hearing() {
    ::testing::internal::CaptureStderr();
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(spdlog_);
    logger_ = std::make_shared<spdlog::logger>("baton", std::move(sink));
    logger_->set_level(spdlog::level::trace);
  }

  ClientOptions options(const std::string& user, const std::string& password) {
    ClientOptions options;
    options.connect_timeout = std::chrono::seconds(10);
    options.session_timeout = std::chrono::seconds(10);
    options.log = log_.sink();
    if (!user.empty()) {
      options.credentials.user = user;
      options.credentials.password_file = password_file(password);
    }
    options.zookeeper.plaintext_auth = true;
    return options;
  }
  ClientOptions by_spdlog(ClientOptions options) {
    options.log = to_spdlog(logger_);
    return options;
  }
  std::string password_file(const std::string& password) {
    const std::string file = directory_ / ("p" + std::to_string(files_++));
    std::ofstream(file) << password << "\n";
    return file;
  }

  void hear(const std::string& text) { heard_ += text + "\n"; }
  void hear(const Client& client) {
    const auto info = client.session();
    hear(info.backend + " " + info.endpoint + " " + info.server_version);
  }
  void hear(const LockSnapshot& seen) {
    for (const auto& entry : seen.entries) hear(entry.id + " " + entry.label);
  }
  void fails(const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      hear(error.what() + std::string(" ") + error.code().message());
    }
  }
  // Runs the baton command and collects its output.
  Finished baton(std::vector<std::string> words, const std::vector<std::string>& variables = {}) {
    words.insert(words.begin(), std::getenv("BATON_BIN"));
    auto done = run(std::move(words), variables);
    hear(done.out + done.err);
    return done;
  }
  // Runs a process for each way of dying, and collects its output. who: the arguments of dying.cpp
  // after HOW.
  void deaths(const std::vector<std::string>& who) {
    struct Death {
      const char* how;
      int signal;
      const char* last_words;
    };
    for (const Death& death :
         {Death{"uncaught", SIGABRT, "what():"}, Death{"noexcept", SIGABRT, "what():"},
          Death{"unwinding", SIGABRT, "terminate called"}, Death{"segv", SIGSEGV, "and dies"},
          Death{"abort", SIGABRT, "dies"}}) {
      const auto done = die(death.how, who);
      EXPECT_EQ(done.code, 128 + death.signal) << death.how << ": " << done.err;
      EXPECT_NE(done.err.find(death.last_words), std::string::npos)
          << death.how << ": " << done.err;
    }
  }
  Finished die(const std::string& how, const std::vector<std::string>& who) {
    std::vector<std::string> words{std::getenv("BATON_DYING"), how};
    words.insert(words.end(), who.begin(), who.end());
    auto done = run(std::move(words));
    hear(done.out + done.err);
    return done;
  }

  // A script for `baton run NAME -- ...`. It prints the command lines of its parent, of the process
  // above that, and of itself, and then its whole environment.
  static std::vector<std::string> look_around() {
    return {"sh", "-c",
            "for p in $PPID $(sed -n 's/^PPid:.//p' /proc/$PPID/status) $$; do tr '\\0' ' ' "
            "</proc/$p/cmdline; done; env; echo looked"};
  }

  // All text that was collected. Clients must have ended: what they write later is missing.
  std::string all() {
    std::string text = heard_ + ::testing::internal::GetCapturedStderr() + spdlog_.str();
    for (const auto& [level, line] : log_.lines()) text += line + "\n";
    return text;
  }
  LogCapture& log() { return log_; }

 private:
  const TempDir directory_;
  LogCapture log_;
  std::ostringstream spdlog_;
  std::shared_ptr<spdlog::logger> logger_;
  std::string heard_;
  int files_ = 0;
};

}  // namespace baton::test

#include "file/backend.h"

#include "common/base/thread_loop.h"
#include "file/session.h"

#include <exception>
#include <utility>

namespace baton::file {

namespace {

class Backend final : public internal::Backend {
 public:
  Backend(const std::string& directory, const BackendOptions& options)
      : options_(options),
        store_(std::make_shared<Store>(directory)),
        loop_(real_clock(),
              [log = options.log](std::string_view text) { log(LogLevel::error, text); }) {}

  Loop& loop() noexcept override { return loop_; }

  void open(SessionListener&, Answer<std::unique_ptr<internal::Session>> answer) override {
    // A file session has no server that could end it, so the listener is never called.
    Result<std::unique_ptr<internal::Session>> result =
        [&]() -> Result<std::unique_ptr<internal::Session>> {
      try {
        return std::unique_ptr<internal::Session>(
            std::make_unique<Session>(loop_, store_, options_));
      } catch (const Error& e) {
        return e;
      } catch (const std::exception& e) {
        return Error(Errc::store_error, e.what());
      }
    }();
    loop_.defer([answer = std::move(answer), result = std::move(result)]() mutable {
      answer(std::move(result));
    });
  }

  void stop() noexcept override { loop_.stop(); }
  std::string where() const override { return "file " + store_->directory.path(); }

 private:
  const BackendOptions options_;
  const std::shared_ptr<Store> store_;
  ThreadLoop loop_;
};

}  // namespace

Result<std::unique_ptr<internal::Backend>> make_backend(const std::string& directory,
                                                        const BackendOptions& options) {
  try {
    return std::unique_ptr<internal::Backend>(std::make_unique<Backend>(directory, options));
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    return Error(Errc::connection_failed, "cannot open file store " + directory + ": " + e.what());
  }
}

}  // namespace baton::file

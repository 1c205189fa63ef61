#include "file/backend.h"

#include "common/base/thread_loop.h"
#include "file/session.h"

#include <exception>
#include <utility>

namespace baton::internal {

namespace {

class FileBackend final : public Backend {
 public:
  FileBackend(const std::string& directory, const BackendOptions& options)
      : options_(options),
        store_(std::make_shared<FileStore>(directory)),
        loop_(real_clock(),
              [log = options.log](std::string_view text) { log(LogLevel::error, text); }) {}

  Loop& loop() noexcept override { return loop_; }

  void open(SessionListener&, Answer<std::unique_ptr<Session>> answer) override {
    // Nobody but its own files ends a session of this store: the listener hears nothing.
    Result<std::unique_ptr<Session>> result = [&]() -> Result<std::unique_ptr<Session>> {
      try {
        return std::unique_ptr<Session>(std::make_unique<FileSession>(loop_, store_, options_));
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
  const std::shared_ptr<FileStore> store_;
  ThreadLoop loop_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_file_backend(const std::string& directory,
                                                   const BackendOptions& options) {
  try {
    return std::unique_ptr<Backend>(std::make_unique<FileBackend>(directory, options));
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    return Error(Errc::connection_failed, "cannot open file store " + directory + ": " + e.what());
  }
}

}  // namespace baton::internal

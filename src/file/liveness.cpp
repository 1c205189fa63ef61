#include "file/liveness.h"

#include "common/base/unique_fd.h"
#include "file/error.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

namespace baton::file {

namespace {

constexpr std::string_view kIntroduction = "baton client 1\n";

struct flock whole_file(short type) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Liveness::Liveness(const StoreDir& store, const std::string& label) : store_(store) {
  // Until our unfinished file is locked, a sweep of another client may take it for a dead client's
  // file and remove it. Then retry with a new id.
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (try_make(label)) return;
  }
  throw damaged("cannot make a liveness file in " + store.path() +
                "/clients: another process keeps removing it");
}

Liveness::~Liveness() = default;

bool Liveness::try_make(const std::string& label) {
  id_ = ClientId{random_u64()};
  const std::string unfinished = client_file_name('t', id_);
  const std::string bell = client_file_name('b', id_);
  // ForkClosedFd::make() blocks fork(), so it must not wait for the disk. Therefore a plain
  // descriptor creates the file and is closed again. Opening the file a second time is fast,
  // because it is in memory. A copy of the plain descriptor in a forked child is harmless: it has
  // no lock.
  UniqueFd made_file = store_.create_file(store_.clients(), unfinished, 0);
  if (!made_file) return false;
  ForkClosedFd file = ForkClosedFd::make([&] {
    return ::openat(store_.clients(), unfinished.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  });
  if (!file && errno == ENOENT) return false;
  const auto fail = [&](int errnum, const char* what) {
    ::unlinkat(store_.clients(), bell.c_str(), 0);
    ::unlinkat(store_.clients(), unfinished.c_str(), 0);
    return io_error(errnum, std::string(what) + " in " + store_.path() + "/clients");
  };
  if (!file) throw fail(errno, "cannot open the liveness file");
  struct stat first {};
  struct stat second {};
  if (::fstat(made_file.get(), &first) != 0 || ::fstat(file.get(), &second) != 0 ||
      first.st_dev != second.st_dev || first.st_ino != second.st_ino) {
    throw fail(EACCES, "cannot open the liveness file: it was replaced");
  }
  made_file.reset();  // now: closing it later would send an event to clients that watch the file
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    throw fail(errno, "cannot lock the liveness file");
  }
  const std::string text = std::string(kIntroduction) + std::to_string(::getpid()) + "\n" + label;
  const ssize_t size = ::write(file.get(), text.data(), text.size());
  if (size < 0) throw fail(errno, "cannot write the liveness file");
  if (static_cast<std::size_t>(size) != text.size()) {
    throw fail(ENOSPC, "cannot write the liveness file");
  }
  // Make the bell after the lock and before the final name: a sweep removes every bell without a
  // living c. or t. file of the same id.
  const mode_t mode = store_.modes().file;
  if (::mkfifoat(store_.clients(), bell.c_str(), mode) != 0) {
    throw fail(errno, "cannot make the bell");
  }
  // O_RDWR makes this client a writer, too, so its reads never see the end of the file.
  ForkClosedFd fifo = ForkClosedFd::make([&] {
    return ::openat(store_.clients(), bell.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  });
  if (!fifo) throw fail(errno, "cannot open the bell");
  // Check the open descriptor: in a shared directory another user may have replaced the file.
  struct stat made {};
  if (::fstat(fifo.get(), &made) != 0 || !S_ISFIFO(made.st_mode) || made.st_uid != ::geteuid() ||
      made.st_nlink != 1) {
    throw fail(EACCES, "cannot make the bell: it was replaced");
  }
  if (::fchmod(fifo.get(), mode) != 0) throw fail(errno, "cannot make the bell");
  if (::renameat(store_.clients(), unfinished.c_str(), store_.clients(),
                 client_file_name('c', id_).c_str()) != 0) {
    const int errnum = errno;
    if (errnum != ENOENT) throw fail(errnum, "cannot name the liveness file");
    ::unlinkat(store_.clients(), bell.c_str(), 0);
    return false;
  }
  file_ = std::move(file);
  bell_ = std::move(fifo);
  return true;
}

void Liveness::move_above(int descriptor) {
  if (file_.get() > descriptor) return;
  auto higher =
      ForkClosedFd::make([&] { return ::fcntl(file_.get(), F_DUPFD_CLOEXEC, descriptor + 1); });
  if (!higher) return;  // other clients then notice our death some milliseconds later
  file_ = std::move(higher);
}

std::size_t Liveness::drain_bell(std::uint64_t* hashes, std::size_t limit) noexcept {
  ssize_t size;
  do {
    size = ::read(bell_.get(), hashes, limit * sizeof *hashes);
  } while (size < 0 && errno == EINTR);
  return size <= 0 ? 0 : static_cast<std::size_t>(size) / sizeof *hashes;
}

void Liveness::close() noexcept {
  file_.reset();
  bell_.reset();
}

void Liveness::remove_files() noexcept {
  ::unlinkat(store_.clients(), client_file_name('b', id_).c_str(), 0);
  ::unlinkat(store_.clients(), client_file_name('c', id_).c_str(), 0);
}

Alive test_liveness(int clients, char kind, ClientId id) noexcept {
  UniqueFd fd(::openat(clients, client_file_name(kind, id).c_str(),
                       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return errno == ENOENT ? Alive::no : Alive::unknown;
  // Test for a read lock: it conflicts with the write lock of a living client and needs no write
  // permission. A file opened for writing would send a close event to all clients that watch it.
  struct flock lock = whole_file(F_RDLCK);
  if (::fcntl(fd.get(), F_OFD_GETLK, &lock) != 0) return Alive::unknown;
  return lock.l_type == F_UNLCK ? Alive::no : Alive::yes;
}

std::string read_label(int clients, ClientId id) {
  UniqueFd fd(::openat(clients, client_file_name('c', id).c_str(),
                       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return {};
  char text[1024];
  const ssize_t size = ::pread(fd.get(), text, sizeof text, 0);
  if (size <= 0) return {};
  std::string_view rest(text, static_cast<std::size_t>(size));
  if (!rest.starts_with(kIntroduction)) return {};
  rest.remove_prefix(kIntroduction.size());
  const std::size_t end_of_pid = rest.find('\n');
  return end_of_pid == rest.npos ? std::string() : std::string(rest.substr(end_of_pid + 1));
}

Rung ring_bell(int clients, ClientId id, std::uint64_t hash) noexcept {
  UniqueFd fd(::openat(clients, client_file_name('b', id).c_str(),
                       O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return errno == ENXIO || errno == ENOENT ? Rung::dead : Rung::unknown;
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISFIFO(status.st_mode)) return Rung::unknown;
  // The reader may die between open and write, and then SIGPIPE would kill this process. So block
  // the signal on this thread, and consume it if this write caused it.
  sigset_t pipe_signal, pending, before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t size = ::write(fd.get(), &hash, sizeof hash);
  const int errnum = errno;
  if (size < 0 && errnum == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
    const timespec no_wait{};
    sigtimedwait(&pipe_signal, nullptr, &no_wait);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (size >= 0 || errnum == EAGAIN) return Rung::heard;
  return errnum == EPIPE ? Rung::dead : Rung::unknown;
}

}  // namespace baton::file

#include "file_world.h"

#include "common/seam/lock_name.h"
#include "file/backend.h"
#include "file/queue_record.h"
#include "file/token_counter.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <semaphore>

namespace baton::fuzz {

using namespace internal;
using namespace file;

namespace {

constexpr const char* kFolders[] = {"", "clients/", "locks/", "locks/a/", "locks/a,/b/"};

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// One record from at least three bytes of the input. Most records are as a client writes them.
QueueRecord make_record(Input& in) {
  QueueRecord record{};
  const std::uint8_t what = in.byte();
  record.magic = kRecordMagic;
  record.version = kRecordVersion;
  record.kind = static_cast<RecordKind>(what & 3);
  record.withdrawn = (what >> 2) & 1;
  record.evicted = (what >> 3) & 1;
  record.dead = (what >> 4) & 1;
  record.client = in.byte() % 4;
  record.nonce = in.byte();
  record.since = 1'700'000'000'000'000;
  if ((what & 0x20) != 0) record.since = static_cast<std::int64_t>(in.edge());
  if ((what & 0x40) != 0) record.nonce = in.edge();
  if ((what & 0x80) != 0) {  // one byte is wrong
    auto* raw = reinterpret_cast<unsigned char*>(&record);
    raw[in.below(sizeof record)] = in.byte();
  }
  return record;
}

QueueRecord make_header(Input& in, std::uint64_t capacity) {
  QueueRecord record{};
  record.magic = kRecordMagic;
  record.version = kRecordVersion;
  record.kind = RecordKind::header;
  record.token = in.edge();
  record.capacity = in.byte() < 240 ? capacity : in.edge();
  record.boot = in.byte() < 240 ? parse_hex16(current_boot()).value() : in.edge();
  return record;
}

TokenPage make_page(Input& in) {
  TokenPage page{};
  page.magic = kTokenMagic;
  page.version = kTokenVersion;
  page.size = sizeof page;
  page.next = in.edge();
  page.pending = page.confirmed = page.next + kTokenBlock;
  const std::uint8_t what = in.byte();
  if ((what & 1) != 0) page.pending = in.edge();
  if ((what & 2) != 0) page.confirmed = in.edge();
  if ((what & 4) != 0) page.named = in.edge();
  if ((what & 8) != 0) page.version = in.byte();
  if ((what & 16) != 0) page.magic = in.word();
  return page;
}

}  // namespace

FileRuins::FileRuins(const std::string& directory, Input& in) : directory_(directory) {
  ::mkdir(directory.c_str(), 0700);
  const std::uint8_t shape = in.byte();
  if ((shape & 1) == 0) {  // otherwise the store is new
    for (const char* folder : {"/clients", "/locks", "/locks/a", "/locks/a,", "/locks/a,/b"}) {
      ::mkdir((directory + folder).c_str(), 0700);
    }
  }
  for (int files = (shape >> 1) % 16; files > 0; --files) make_one(in);
}

FileRuins::~FileRuins() {
  for (const int fd : locked_) ::close(fd);
}

std::string FileRuins::pick_name(Input& in, std::size_t where) {
  const std::string id = hex16(in.byte() % 4);
  switch (in.byte() % 8) {
    case 0: {
      std::string name = in.text();
      std::replace(name.begin(), name.end(), '/', '_');
      return name.c_str();
    }
    case 1:
      return "tokens." + (in.flag() ? id : current_boot());
    case 2:
      return (in.flag() ? "t." : "b.") + id;
    case 3:
      return ",new." + id;
    case 4:
      return "queue." + std::to_string(in.edge()) + "." + id;
    default:
      return where == 0   ? "tokens." + current_boot()
             : where == 1 ? "c." + id
                          : "queue." + std::to_string(1 + in.byte() % 6) + "." + id;
  }
}

std::string FileRuins::pick_content(Input& in, const std::string& name) {
  std::string content;
  const std::uint8_t how = in.byte();
  if (name.starts_with("queue.")) {
    const auto id = parse_queue_file_name(name);
    if ((how & 1) == 0) content += bytes_of(make_header(in, capacity_of(id ? id->number : 1)));
    int records = (how >> 1) % 16;
    if ((how & 0x20) != 0) records = 64 + records;  // the file is about full
    for (; records > 0; --records) content += bytes_of(make_record(in));
  } else if (name.starts_with("tokens.")) {
    content = bytes_of(make_page(in));
  } else if (name.starts_with("c.")) {
    content = "baton client 1\n17\n" + in.text();
  }
  if ((how & 0xc0) == 0x40) content += in.text();
  if ((how & 0xc0) == 0x80) content = in.text();
  if ((how & 0xc0) == 0xc0) content.resize(std::min<std::size_t>(content.size(), in.byte()));
  return content;
}

void FileRuins::make_one(Input& in) {
  const std::size_t where = in.byte() % std::size(kFolders);
  const std::string name = pick_name(in, where);
  const std::string path = directory_ + "/" + kFolders[where] + name;
  if (name.empty() || name == "." || name == ".." || name.size() > 200) return;
  const std::uint8_t kind = in.byte();
  switch (kind >= 250 ? kind : 0) {
    case 250:
      strange_ = ::mkdir(path.c_str(), 0700) == 0 || strange_;
      return;
    case 251:
      strange_ = ::symlink("/dev/null", path.c_str()) == 0 || strange_;
      return;
    case 252:
      strange_ = ::mkfifo(path.c_str(), 0600) == 0 || strange_;
      return;
    default:
      break;
  }
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  const std::string content = pick_content(in, name);
  const bool whole =
      ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  FUZZ_REQUIRE(whole);
  if (kind == 253) strange_ = ::link(path.c_str(), (path + "+").c_str()) == 0 || strange_;
  if (where == 0 && name.starts_with("tokens.") && content.size() >= sizeof(TokenPage)) {
    TokenPage page{};
    std::memcpy(&page, content.data(), sizeof page);
    if (token_page_damage(page) == nullptr) {
      // For a token file of another boot the limit counts, because tokens up to the limit may have
      // been handed out. The counter of this boot was made from those files, so they do not count
      // if it exists.
      const bool ours = name == "tokens." + current_boot();
      if (ours || !counted_here_) {
        counted_ = ours ? page.next : std::max({counted_, page.next, page.pending});
      }
      counted_here_ = counted_here_ || ours;
    }
  }
  if (where == 1 && (kind & 1) != 0) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    FUZZ_REQUIRE(::fcntl(fd, F_OFD_SETLK, &lock) == 0);
    locked_.push_back(fd);
  } else {
    ::close(fd);
  }
}

// ---- A client.

struct FileClient::Deaf : SessionListener {
  void session_ended(std::error_code, const std::string&) override {}
  void session_resumed() override {}
};

template <class T, class F>
Result<T> FileClient::ask(F question) {
  std::optional<Result<T>> out;
  std::binary_semaphore done(0);
  int answers = 0;
  backend_->loop().run([&] {
    question(Answer<T>([&](Result<T> result) {
      ++answers;
      out.emplace(std::move(result));
      done.release();
    }));
    FUZZ_REQUIRE(answers == 0);  // the answer never arrives inside the call
  });
  FUZZ_REQUIRE(done.try_acquire_for(std::chrono::seconds(4)));
  FUZZ_REQUIRE(answers == 1);
  return *std::move(out);
}

FileClient::FileClient(const std::string& directory) : deaf_(std::make_unique<Deaf>()) {
  BackendOptions options{};
  options.label = "fuzz";
  options.log = [](LogLevel, std::string_view) {};
  backend_ = file::make_backend(directory, options).value();
  auto session = ask<std::unique_ptr<Session>>(
      [&](auto answer) { backend_->open(*deaf_, std::move(answer)); });
  if (!session) backend_->stop();
  session_ = std::move(session).value();
}

FileClient::~FileClient() { crash(); }

void FileClient::crash() {
  if (!backend_) return;
  std::binary_semaphore done(0);
  backend_->loop().run([&] {
    session_.reset();
    done.release();
  });
  done.acquire();
  backend_->stop();
  backend_.reset();
}

void FileClient::close() {
  const auto closed = ask<Done>([&](auto answer) { session_->close(std::move(answer)); });
  FUZZ_REQUIRE(closed.has_value());
  crash();
}

namespace {
LockName name_of(const std::string& lock) { return parse_lock_name(lock).value(); }
}  // namespace

Result<Standing> FileClient::join(const std::string& lock, std::uint64_t nonce) {
  return ask<Standing>([&](auto a) { session_->join(name_of(lock), Nonce{nonce}, std::move(a)); });
}
Result<Standing> FileClient::look(const std::string& lock, std::uint64_t nonce) {
  return ask<Standing>(
      [&](auto a) { session_->look(name_of(lock), Nonce{nonce}, {}, std::move(a)); });
}
Result<bool> FileClient::verify(const std::string& lock, std::uint64_t nonce) {
  return ask<bool>([&](auto a) { session_->verify(name_of(lock), Nonce{nonce}, std::move(a)); });
}
Result<bool> FileClient::peek(const std::string& lock) {
  return ask<bool>([&](auto a) { session_->peek(name_of(lock), std::move(a)); });
}
Result<WithdrawResult> FileClient::withdraw(const std::string& lock, std::uint64_t nonce) {
  return ask<WithdrawResult>(
      [&](auto a) { session_->withdraw(name_of(lock), Nonce{nonce}, std::move(a)); });
}
Result<LockSnapshot> FileClient::inspect(const std::string& lock) {
  return ask<LockSnapshot>([&](auto a) { session_->inspect(name_of(lock), std::move(a)); });
}
Result<std::vector<std::string>> FileClient::list(const std::string& prefix) {
  return ask<std::vector<std::string>>([&](auto a) { session_->list(prefix, std::move(a)); });
}
Result<bool> FileClient::evict(const std::string& lock, const std::string& entry) {
  return ask<bool>([&](auto a) { session_->evict(name_of(lock), entry, std::move(a)); });
}

}  // namespace baton::fuzz

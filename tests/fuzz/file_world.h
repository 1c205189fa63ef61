// A directory of a file store as a fuzzer wants it, and clients that open it.
#pragma once

#include "common/seam/session.h"
#include "file/names.h"
#include "fuzz.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::fuzz {

using internal::Answer;
using internal::Nonce;
using internal::Standing;

// What was left in the directory before anybody opens it: files of every kind, with names and
// contents that are right, nearly right and wrong. Some of their clients live: this process keeps
// their locks until the object goes.
class FileRuins {
 public:
  FileRuins(const std::string& directory, Input& in);
  ~FileRuins();
  FileRuins(const FileRuins&) = delete;
  FileRuins& operator=(const FileRuins&) = delete;

  // What a counter that could be trusted said before anybody came; 0: there was none.
  std::uint64_t counted() const noexcept { return counted_; }
  bool strange() const noexcept { return strange_; }  // something is no plain file or has two names

 private:
  void make_one(Input& in);
  std::string pick_name(Input& in, std::size_t where);
  std::string pick_content(Input& in, const std::string& name);

  const std::string directory_;
  std::vector<int> locked_;
  std::uint64_t counted_ = 0;
  bool counted_here_ = false;  // by this boot
  bool strange_ = false;
};

// One client, asked from this thread; every question is answered before the call returns.
class FileClient {
 public:
  explicit FileClient(const std::string& directory);  // throws Error
  ~FileClient();
  FileClient(const FileClient&) = delete;
  FileClient& operator=(const FileClient&) = delete;

  Result<Standing> join(const std::string& lock, std::uint64_t nonce);
  Result<Standing> look(const std::string& lock, std::uint64_t nonce);
  Result<bool> verify(const std::string& lock, std::uint64_t nonce);
  Result<bool> peek(const std::string& lock);
  Result<internal::WithdrawResult> withdraw(const std::string& lock, std::uint64_t nonce);
  Result<LockSnapshot> inspect(const std::string& lock);
  Result<std::vector<std::string>> list(const std::string& prefix);
  Result<bool> evict(const std::string& lock, const std::string& entry);
  void close();
  void crash();  // what the kernel does to the descriptors of a killed process

 private:
  template <class T, class F>
  Result<T> ask(F question);
  struct Deaf;

  std::unique_ptr<Deaf> deaf_;
  std::unique_ptr<internal::Backend> backend_;
  std::unique_ptr<internal::Session> session_;
};

}  // namespace baton::fuzz

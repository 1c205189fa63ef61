// A damaged directory of a file store, made from a fuzz input, and clients that open it.
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

// The files that exist before a client opens the store: files of every kind, with names and
// contents that are right, nearly right or wrong. Some client files look alive: this process keeps
// their file locks until this object is destroyed.
class FileRuins {
 public:
  FileRuins(const std::string& directory, Input& in);
  ~FileRuins();
  FileRuins(const FileRuins&) = delete;
  FileRuins& operator=(const FileRuins&) = delete;

  // The lowest value that the token counter may continue from, as the undamaged token files record
  // it. 0: there is no undamaged token file.
  std::uint64_t counted() const noexcept { return counted_; }
  // Whether an entry is not a regular file, or has two names.
  bool strange() const noexcept { return strange_; }

 private:
  void make_one(Input& in);
  std::string pick_name(Input& in, std::size_t where);
  std::string pick_content(Input& in, const std::string& name);

  const std::string directory_;
  std::vector<int> locked_;
  std::uint64_t counted_ = 0;
  bool counted_here_ = false;  // counted_ is from the token file of this boot
  bool strange_ = false;
};

// One client, called from one thread. Every call returns after the store has answered.
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
  // Closes the descriptors without a clean end, as the kernel does for a killed process.
  void crash();

 private:
  template <class T, class F>
  Result<T> ask(F question);
  struct Deaf;

  std::unique_ptr<Deaf> deaf_;
  std::unique_ptr<internal::Backend> backend_;
  std::unique_ptr<internal::Session> session_;
};

}  // namespace baton::fuzz

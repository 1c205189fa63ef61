#include "chaos/ledger.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace baton::chaos {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::size_t Ledger::bytes(std::size_t capacity) noexcept {
  return sizeof(Header) + capacity * (sizeof(Hold) + sizeof(Sighting));
}

// Memory without a disk file: a worker that writes a stamp must not wait for the disk.
Ledger::Ledger(std::size_t capacity) : descriptor_(::memfd_create("ledger", 0)) {
  if (descriptor_ < 0) fail("memfd_create");
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes(capacity))) != 0) fail("ftruncate");
  map(bytes(capacity));
  header_->capacity = capacity;
  sightings_ = reinterpret_cast<Sighting*>(holds_ + capacity);
}

Ledger::Ledger(int descriptor) : descriptor_(descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail("fstat");
  map(static_cast<std::size_t>(status.st_size));
  sightings_ = reinterpret_cast<Sighting*>(holds_ + header_->capacity);
}

Ledger::~Ledger() {
  ::munmap(memory_, size_);
  ::close(descriptor_);
}

void Ledger::map(std::size_t size) {
  memory_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory_ == MAP_FAILED) fail("mmap");
  size_ = size;
  header_ = static_cast<Header*>(memory_);
  holds_ = reinterpret_cast<Hold*>(header_ + 1);
}

Hold& Ledger::new_hold() {
  const std::uint64_t i = header_->holds++;
  if (i >= header_->capacity) throw std::length_error("the ledger is full");
  return holds_[i];
}

void Ledger::add_sighting(Sighting sighting) {
  const std::uint64_t i = header_->sightings;
  if (i >= header_->capacity) return;
  sightings_[i] = sighting;
  header_->sightings = i + 1;
}

std::size_t Ledger::holds() const noexcept {
  return std::min<std::size_t>(header_->holds, header_->capacity);
}

std::size_t Ledger::sightings() const noexcept { return header_->sightings; }

}  // namespace baton::chaos

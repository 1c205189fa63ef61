// Rigs for the memory store: one with a plain store, and one with virtual time for the faults.
#include "conformance/fixture.h"

#include <baton/testing.h>

#include <atomic>
#include <string>

namespace baton::conformance {
namespace {

std::string fresh_name() {
  static std::atomic<int> next{0};
  return "conformance-" + std::to_string(next++);
}

class MemoryRig : public Rig {
 public:
  ~MemoryRig() override { close_observer(); }
  std::string url() const override { return "memory:" + name_; }

 private:
  std::string name_ = fresh_name();
};

// This rig has no observer, because end_sessions() and cut() would affect it too.
class VirtualMemoryRig : public Rig {
 public:
  std::string url() const override { return "memory:" + name_; }
  std::size_t entries(std::string_view name) override { return store_.entries(name); }
  std::size_t locks() override {
    std::size_t n = 0;
    for (const char* name : {"a", "b", "c"}) n += store_.entries(name) != 0;
    return n;
  }
  bool remove_entry(std::string_view name, std::string_view id) override {
    return store_.remove_entry(name, id);
  }
  std::chrono::nanoseconds now() const override { return store_.now(); }
  void tick() override {
    store_.advance(std::chrono::milliseconds(20));
    test::poll_pause();
  }
  void end_sessions() override { store_.expire_sessions(); }
  void cut() override { store_.disconnect(); }
  void heal() override { store_.reconnect(); }
  void lose_next_answer() override { store_.drop_next_answer(); }
  void delay_next_answer(milliseconds by) override { store_.delay_next_answer(by); }

 private:
  std::string name_ = fresh_name();
  testing::MemoryStore store_{name_};
};

const RigKind kMemory{"memory", [] { return std::unique_ptr<Rig>(new MemoryRig); }};
const RigKind kVirtual{"virtual_memory", [] { return std::unique_ptr<Rig>(new VirtualMemoryRig); }};

BATON_CONFORMANCE(kMemory, kVirtual);

}  // namespace
}  // namespace baton::conformance

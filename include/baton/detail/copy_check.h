// CopyCheck: notices that the object around it was copied as bytes. Internal: no program includes
// this.
#pragma once

namespace baton::internal {

// A member that knows where it was constructed. g++ 12 has a bug: inside a co_await expression it
// makes the members of a braced temporary first, copies their bytes into the temporary, and then
// destroys both. CopyCheck lets the destructor of the temporary see that its members are such
// copies, which own nothing.
class CopyCheck {
 public:
  CopyCheck() noexcept : self_(this) {}
  CopyCheck(const CopyCheck& /*other*/) noexcept : self_(this) {}
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): it assigns nothing
  CopyCheck& operator=(const CopyCheck& /*other*/) noexcept { return *this; }
  ~CopyCheck() = default;

  // False: the bytes around this member were copied without a constructor.
  bool constructed() const noexcept { return self_ == this; }

 private:
  const CopyCheck* self_;
};

}  // namespace baton::internal

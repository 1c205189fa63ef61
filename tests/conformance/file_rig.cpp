// Rig for the file store, in a private directory. It cannot end a session; Crashes and Forks test
// sessions that end with their process.
#include "conformance/fixture.h"
#include "support/temp_dir.h"

#include <string>

namespace baton::conformance {
namespace {

class FileRig : public Rig {
 public:
  ~FileRig() override { close_observer(); }
  std::string url() const override { return "file://" + directory_.path() + "/locks"; }

 private:
  test::TempDir directory_;
};

const RigKind kFile{"file", [] { return std::unique_ptr<Rig>(new FileRig); }};

BATON_CONFORMANCE(kFile, kFile);

}  // namespace
}  // namespace baton::conformance

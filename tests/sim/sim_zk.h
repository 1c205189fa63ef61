// A client of a ZkEnsemble: the real zk::Session on a simulated transport.
#pragma once

#include "fakes/session_opening.h"
#include "sim_store.h"
#include "zk/session.h"
#include "zk_ensemble.h"
#include "zk_sim_line.h"

#include <memory>
#include <string>
#include <utility>

namespace baton::sim {

inline std::string zk_client_id(int number) {
  return "c" + std::to_string(10'000'000 + number).substr(1);
}

class ZkPort final : public SimPort {
 public:
  ZkPort(World& world, PortParts parts, ZkEnsemble& ensemble);
  void open(internal::SessionListener& listener,
            internal::Answer<std::unique_ptr<internal::Session>> answer) override {
    opening_.open(listener, std::move(answer));
  }
  // The transport of the newest session. It is deleted with that session.
  SimZkLine* newest() const { return newest_; }

 private:
  zk::SessionParts session_parts();

  World& world_;
  const PortParts parts_;
  ZkEnsemble& ensemble_;
  internal::SessionOpening opening_;
  SimZkLine* newest_ = nullptr;
};

}  // namespace baton::sim

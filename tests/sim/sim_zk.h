// A client of a ZkEnsemble: the real zk::Session over simulated lines.
#pragma once

#include "sim_store.h"
#include "zk/session.h"
#include "zk_ensemble.h"
#include "zk_sim_line.h"

#include <memory>

namespace baton::sim {

class ZkPort final : public SimPort {
 public:
  ZkPort(World& world, PortParts parts, ZkEnsemble& ensemble);
  void open(internal::SessionListener& listener,
            internal::Answer<std::unique_ptr<internal::Session>> answer) override;
  // The line of the newest session; gone with it.
  SimZkLine* newest() const { return newest_; }

 private:
  void finish(Result<internal::Done> done);

  World& world_;
  const PortParts parts_;
  ZkEnsemble& ensemble_;
  std::uint64_t opens_ = 0;
  internal::TimerId timer_ = internal::TimerId::none;
  internal::Answer<std::unique_ptr<internal::Session>> answer_;
  std::unique_ptr<zk::Session> opening_;
  SimZkLine* newest_ = nullptr;
};

}  // namespace baton::sim

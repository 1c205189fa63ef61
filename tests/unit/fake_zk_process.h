// One process on the fake ensemble.
#pragma once

#include "fake_process.h"
#include "fake_zk_client.h"

#include <memory>
#include <string>
#include <utility>

namespace baton::zk {

class FakeZkProcess final : public FakeProcess {
 public:
  FakeZkProcess(FakeZk& zk, HoldJudge& judge, int number, std::size_t watch_budget)
      : FakeProcess(zk.loop(), judge, number, SessionOpening::Accept::any_result,
                    [&zk, number, watch_budget](auto& listener, auto opened) {
                      auto parts = fake_zk_parts(zk, "process" + std::to_string(number));
                      parts.watch_budget = watch_budget;
                      return std::make_unique<Session>(std::move(parts), listener,
                                                       std::move(opened));
                    }) {}
};

}  // namespace baton::zk

// The text of /metrics.
#pragma once

#include <string>

namespace baton::test {

// The sum of the series of this name that have at least these labels:
//   etcd_server_has_leader
//   grpc_server_started_total{grpc_service="etcdserverpb.KV",grpc_method="Range"}
// -1: there is none.
double metric_in(const std::string& text, const std::string& which);

}  // namespace baton::test

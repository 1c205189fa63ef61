// Reads the text of etcd's /metrics.
#pragma once

#include <string>

namespace baton::test {

// The sum of all series with this name and at least these labels. -1: there is no such series.
// Examples of `which`:
//   etcd_server_has_leader
//   grpc_server_started_total{grpc_service="etcdserverpb.KV",grpc_method="Range"}
double metric_in(const std::string& text, const std::string& which);

}  // namespace baton::test

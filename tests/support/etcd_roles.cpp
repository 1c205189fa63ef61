// The part of EtcdCluster that reads the roles and the counters of servers.
#include "support/etcd_metrics.h"
#include "support/etcd_server.h"
#include "support/http.h"

namespace baton::test {
namespace {

std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

}  // namespace

// ---- Roles ----

std::vector<std::string> EtcdCluster::awake_hosts() const {
  std::vector<std::string> all;
  for (int i = 0; i < size(); ++i) {
    if (awake(i)) all.push_back(ask_host(i));
  }
  return all;
}

std::optional<EtcdStatus> EtcdCluster::status(int i) const {
  return EtcdStore::status(ask_host(i));
}

std::optional<int> EtcdCluster::find_leader(int except) const {
  std::optional<int> best;
  std::uint64_t best_term = 0;
  for (int i = 0; i < size(); ++i) {
    if (i == except || !awake(i)) continue;
    const auto now = status(i);
    if (!now || !now->leads() || (best && now->term <= best_term)) continue;
    best = i;
    best_term = now->term;
  }
  return best;
}

bool EtcdCluster::follows(int i) const {
  const auto now = status(i);
  return now && now->leader != 0 && !now->leads();
}

bool EtcdCluster::serving(int i) { return awake(i) && reads(ask_host(i)); }

bool EtcdCluster::all_synced() const {
  const auto leads = find_leader(-1);
  const auto first = leads ? status(*leads) : std::nullopt;
  if (!first || first->applied < first->committed) return false;
  for (int i = 0; i < size(); ++i) {
    if (i == *leads || !awake(i)) continue;
    const auto now = status(i);
    if (!now || now->leader != first->member || now->term != first->term ||
        now->applied < first->committed) {
      return false;
    }
  }
  return true;
}

void EtcdCluster::make_leader(int i) {
  wait_for("server " + std::to_string(i) + " to lead", [&] {
    const auto now = status(i);
    if (!now) return false;
    if (now->leads()) return true;
    try {
      move_leader(ask_host(leader()), now->member);
    } catch (const EtcdError&) {  // another server leads by now
    }
    return false;
  });
}

// ---- What servers count ----

double EtcdCluster::metric(int i, const std::string& which) const {
  const auto answer = http(local_host(port(i, kMetrics)), {"/metrics", "", {}});
  return answer && answer->status == 200 ? metric_in(answer->body, which) : -1;
}

double EtcdCluster::counter(int i, const std::string& name, const std::string& service,
                            const std::string& method, const std::string& more) const {
  return metric(i, name + "{grpc_service=\"etcdserverpb." + service + "\",grpc_method=\"" + method +
                       "\"" + more + "}");
}

std::int64_t EtcdCluster::unary_calls(int i, const std::string& service,
                                      const std::string& method) const {
  return whole(counter(i, "grpc_server_started_total", service, method, ",grpc_type=\"unary\""));
}

std::int64_t EtcdCluster::streams(int i, const std::string& service,
                                  const std::string& method) const {
  return whole(
      counter(i, "grpc_server_started_total", service, method, ",grpc_type=\"bidi_stream\""));
}

std::int64_t EtcdCluster::open_streams(int i, const std::string& service,
                                       const std::string& method) const {
  const auto ended = counter(i, "grpc_server_handled_total", service, method);
  const auto begun = streams(i, service, method);
  return begun < 0 || ended < 0 ? -1 : begun - whole(ended);
}

std::int64_t EtcdCluster::messages_received(int i, const std::string& service,
                                            const std::string& method) const {
  return whole(counter(i, "grpc_server_msg_received_total", service, method));
}

std::int64_t EtcdCluster::messages_sent(int i, const std::string& service,
                                        const std::string& method) const {
  return whole(counter(i, "grpc_server_msg_sent_total", service, method));
}

std::int64_t EtcdCluster::watchers(int i) const {
  return whole(metric(i, "etcd_debugging_mvcc_watcher_total"));
}

}  // namespace baton::test

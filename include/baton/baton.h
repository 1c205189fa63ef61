// baton: strongly consistent locks across processes and machines. Includes all headers that most
// programs need.
//
//   auto client = baton::Client::connect("file:///var/lib/orders/locks");
//   baton::Lock lock = client.mutex("orders/7").acquire_for(std::chrono::seconds(30));
//   write_order(7, lock.token());   // the lock is released at the end of the scope
//
// Not included, because few programs need them: <baton/testing.h> (loses locks on purpose, in unit
// tests), <baton/spdlog.h> (log lines to a spdlog logger), <baton/etcd_channel.h> (a gRPC channel
// instead of a URL).
#pragma once

#include <baton/client.h>
#include <baton/error.h>
#include <baton/lock.h>
#include <baton/mutex.h>
#include <baton/name.h>
#include <baton/options.h>
#include <baton/result.h>
#include <baton/version.h>

// Three clients that hold one lock each, in a program that also uses gRPC itself.
// Usage: baton_etcd_clock_keeper URL SESSION_MS
#include <baton/baton.h>

#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>

int main(int, char** argv) {
  using namespace std::chrono_literals;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(120);
  // This thread waits for an event that never comes. It starts before all other threads that use
  // gRPC, so it is the thread that waits for the network.
  grpc::CompletionQueue quiet;
  std::thread([&quiet] {
    void* tag = nullptr;
    bool ok = false;
    quiet.Next(&tag, &ok);
  }).detach();
  std::deque<baton::Client> clients;
  std::deque<baton::Lock> locks;
  baton::ClientOptions options;
  options.session_timeout = std::chrono::milliseconds(std::atoi(argv[2]));
  for (const char* name : {"a", "b", "c"}) {
    clients.push_back(baton::Client::connect(argv[1], options));
    locks.push_back(clients.back().mutex(name).acquire({.timeout = 30s}));
  }
  std::puts("held");
  std::fflush(stdout);
  std::getchar();
  std::printf("kept %d\n", static_cast<int>(std::count_if(locks.begin(), locks.end(),
                                                          [](auto& l) { return l.valid(); })));
  std::fflush(stdout);
  ::_exit(0);  // the detached thread never ends
}

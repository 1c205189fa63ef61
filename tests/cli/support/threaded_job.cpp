// A job whose main thread has ended while another thread still works. It prints its pid, then "got
// TERM" when it gets SIGTERM, and then "cleaned up" at the end of its input.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace {

bool main_thread_has_ended() {
  std::ifstream file("/proc/self/stat");  // shows the state of the main thread
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && text.compare(end, 3, ") Z") == 0;
}

void work(const sigset_t& term) {
  while (!main_thread_has_ended()) std::this_thread::yield();
  dprintf(STDOUT_FILENO, "%d\n", getpid());
  int got = 0;
  sigwait(&term, &got);
  dprintf(STDOUT_FILENO, "got TERM\n");
  char buffer[64];
  while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) {
  }
  dprintf(STDOUT_FILENO, "cleaned up\n");
  _exit(0);
}

}  // namespace

int main() {
  static sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);
  std::thread([] { work(term); }).detach();
  pthread_exit(nullptr);
}

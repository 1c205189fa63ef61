// The example of the README, for any store.
//
//   first [--url URL]

#include <baton/baton.h>

#include "example.h"

#include <iostream>

void update_order(const std::string& url) {
  auto client = baton::Client::connect(url);
  baton::Lock lock = client.mutex("orders/7").acquire_for(std::chrono::seconds(30));

  std::stop_token lost = lock.lost_token();  // stop is requested when the lock is lost
  for (int item = 1; item <= 3 && !lost.stop_requested(); ++item) {
    // Send the token along: what the lock protects refuses one smaller than it has seen before.
    std::cout << "UPDATE orders SET items = " << item << ", fence = " << lock.token()
              << " WHERE id = 7 AND fence <= " << lock.token() << ";\n";
  }
}  // released here; the next in line has it

int main(int argc, char** argv) try {
  example::Scratch scratch;
  update_order(example::store_url(argc, argv, scratch));
  return 0;
} catch (const std::exception& error) {
  std::cerr << "first: " << error.what() << '\n';
  return 1;
}

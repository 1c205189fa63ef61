// The example of the README.
#include <baton/baton.h>
#include <iostream>

int main() {
  auto client = baton::Client::connect("file:///tmp/shop-locks");
  baton::Lock lock = client.mutex("orders/7").acquire_for(std::chrono::seconds(30));

  std::stop_token lost = lock.lost_token();  // stop is requested when the lock is lost
  for (int item = 1; item <= 3 && !lost.stop_requested(); ++item) {
    // Send the token along: what the lock protects refuses one smaller than it has seen before.
    std::cout << "UPDATE orders SET items = " << item << ", fence = " << lock.token()
              << " WHERE id = 7 AND fence <= " << lock.token() << ";\n";
  }
}  // released here; the next in line has it

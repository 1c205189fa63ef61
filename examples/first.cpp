// The example of the README, for any store.
//
//   first [--url URL]

#include <baton/baton.h>

#include "example.h"

#include <iostream>

// Stands for your database: runs a statement and returns how many rows it has changed.
int execute(const std::string& sql) {
  std::cout << sql << ";\n";
  return 1;
}

int update_order(const std::string& url) {
  auto client = baton::Client::connect(url);
  baton::Lock lock = client.mutex("orders/7").acquire_for(std::chrono::seconds(30));
  const std::string token = std::to_string(lock.token());
  std::stop_token lost = lock.lost_token();  // stop is requested when the lock is lost

  // Record the token before you read: from now on the row refuses every older holder.
  if (execute("UPDATE orders SET fence = " + token + " WHERE id = 7 AND fence <= " + token) == 0) {
    return 1;  // zero rows changed: refused, a newer holder has recorded its token
  }
  int items = 0;  // SELECT items FROM orders WHERE id = 7
  while (items < 3 && !lost.stop_requested()) {
    const std::string sql = "UPDATE orders SET items = " + std::to_string(++items);
    if (execute(sql + " WHERE id = 7 AND fence = " + token) == 0) return 1;  // refused: stop
  }
  return 0;
}  // released here; the next in line has it

int main(int argc, char** argv) try {
  example::Scratch scratch;
  return update_order(example::store_url(argc, argv, scratch));
} catch (const std::exception& error) {
  std::cerr << "first: " << error.what() << '\n';
  return 1;
}

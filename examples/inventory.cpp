// Eight processes sell 200 items. A sale reads the stock, waits a little, and writes the stock.
// Without a lock two sellers read the same number and sell the same item. The token is for the case
// that a lock alone cannot prevent: a seller is paused during its sale and loses the lock. Then its
// write is refused, and it sells nothing.
//
//   inventory [--url URL]      with the lock: exactly 200 sales
//   inventory --unlocked       without the lock: more sales than items

#include <baton/baton.h>

#include "example.h"
#include "fenced_row.h"

#include <iostream>
#include <optional>

constexpr int kItems = 200;
constexpr int kSellers = 8;

// Writes a receipt for each sale: a byte at the end of a file. The kernel appends it atomically.
void write_receipt(const std::string& file) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0 || write(fd, ".", 1) != 1) throw std::runtime_error("cannot write receipt");
  close(fd);
}

// Sells until nothing is left.
int sell(const std::string& url, const std::string& dir, bool locked) {
  std::optional<baton::Client> client;
  if (locked) client = baton::Client::connect(url);
  example::FencedRow stock(dir + "/stock");
  while (true) {
    std::optional<baton::Lock> lock;  // released at the end of each turn
    if (locked) lock = client->mutex("examples/inventory").acquire();
    // Without the lock all sellers have token 0, and no write is refused.
    const std::uint64_t token = lock ? lock->token() : 0;

    // Record the token before the read: from then on no older holder can write. If a step is
    // refused, nothing was sold: acquire the lock again, with a greater token.
    if (!stock.record(token)) continue;
    const int left = std::stoi(stock.read());
    if (left <= 0) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the customer pays
    if (!stock.write(token, std::to_string(left - 1))) continue;
    write_receipt(dir + "/receipts");
  }
}

int run(int argc, char** argv) {
  example::Scratch scratch;
  const bool locked = !example::has(argc, argv, "--unlocked");
  const std::string url = example::store_url(argc, argv, scratch);
  example::require_shared(url);
  if (locked) baton::Client::connect(url);  // a wrong URL fails here, once

  example::FencedRow(scratch.path() + "/stock").write(0, std::to_string(kItems));
  std::vector<pid_t> sellers;
  for (int i = 0; i < kSellers; ++i) {
    sellers.push_back(example::spawn({"--role", "seller", "--url", url, "--dir", scratch.path(),
                                      locked ? "--locked" : "--unlocked"}));
  }
  bool all_well = true;
  for (const pid_t pid : sellers) all_well = example::succeeded(pid) && all_well;
  if (!all_well) throw std::runtime_error("a seller failed");

  const auto sold = std::filesystem::file_size(scratch.path() + "/receipts");
  std::cout << (locked ? "with the lock:    " : "without the lock: ") << kSellers
            << " processes sold " << sold << " of " << kItems << " items"
            << (sold == kItems ? "" : "  <- oversold") << '\n';
  return !locked || sold == kItems ? 0 : 1;
}

int main(int argc, char** argv) try {
  const bool started_by_us = !example::option(argc, argv, "--role").empty();
  example::limit_seconds(60, started_by_us);
  if (started_by_us) {
    return sell(example::option(argc, argv, "--url"), example::option(argc, argv, "--dir"),
                example::has(argc, argv, "--locked"));
  }
  return run(argc, argv);
} catch (const std::exception& error) {
  std::cerr << "inventory: " << error.what() << '\n';
  return 1;
}

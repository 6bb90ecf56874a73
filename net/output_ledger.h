// Who owes how much output, over all I/O threads of a server: enforces the bound on the sum by
// cutting those that owe most. A connection is listed only while the kernel does not take its
// replies, so that ordinary traffic never comes here.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace ingot::net {

class ConnectionImpl;

class OutputLedger {
 public:
  // `connection` stays listed until remove(); its output_bytes says what it owes.
  void add(ConnectionImpl& connection);
  void remove(ConnectionImpl& connection);

  // Has the largest debtors cut that owe `excess` together, with those that are being cut already.
  // What they share with others may stay in memory: then there is a next time.
  void enforce(uint64_t excess);

 private:
  std::mutex mutex_;
  std::unordered_map<ConnectionImpl*, bool> debtors_;  // to: whether it is being cut already
};

}  // namespace ingot::net

// What was refused, for ACL LOG: a command, a key, a channel, a password. The newest stand first;
// what repeats within a minute is one entry. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/access/verdict.h"

namespace ingot::contract {
class ClientRegistry;
}

namespace ingot::access {

struct LogEntry {
  uint64_t count = 1;
  std::string_view reason;  // "command", "key", "channel", "auth"
  Origin origin = Origin::kTopLevel;
  std::string object;  // the command's full name, the key, the channel, or "AUTH" as it was given
  std::string user;
  int64_t time_ms = 0;      // Unix, of the last time
  std::string client = {};  // its line of CLIENT LIST then
};

std::string_view reason_name(Reason reason);
std::string_view origin_name(Origin origin);

class AclLog {
 public:
  static constexpr size_t kBytesMax = 16 << 20;

  // `entries_max`: acllog-max-len, beyond which the oldest are forgotten, as beyond kBytesMax. Long
  // objects and names are cut, because a key may be as large as a value.
  void add(LogEntry entry, size_t entries_max);
  std::vector<LogEntry> newest(size_t count) const;
  void reset();

 private:
  mutable std::mutex mutex_;
  // By mutex_:
  std::deque<LogEntry> entries_;
  size_t bytes_ = 0;  // of entries_
};

// Adds what was denied to a client. Not under the registry's lock.
void log_denied(AclLog& log, const contract::ClientRegistry& clients, uint64_t client_id,
                size_t entries_max, LogEntry entry);

}  // namespace ingot::access

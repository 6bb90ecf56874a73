// Merging new entries into the log.
#include "src/access/acl_log.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "src/access/client_line.h"
#include "src/contract/client_registry.h"

namespace ingot::access {
namespace {

constexpr int64_t kMergedWithinMs = 60'000;
constexpr size_t kLookedThrough = 10;  // of the newest ones
constexpr size_t kTextMax = 4096;

bool is_same(const LogEntry& a, const LogEntry& b) {
  return a.reason == b.reason && a.origin == b.origin &&
         std::abs(a.time_ms - b.time_ms) <= kMergedWithinMs && a.object == b.object &&
         a.user == b.user;
}

void cut(std::string* text) {
  if (text->size() <= kTextMax) return;
  text->resize(kTextMax);
  text->shrink_to_fit();
}

size_t bytes_of(const LogEntry& entry) {
  return sizeof entry + entry.object.size() + entry.user.size() + entry.client.size();
}

}  // namespace

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::kCommand:
      return "command";
    case Reason::kKey:
      return "key";
    case Reason::kChannel:
      return "channel";
    case Reason::kAllowed:
      break;
  }
  return "unknown";
}

std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::kTopLevel:
      return "toplevel";
    case Origin::kMulti:
      return "multi";
    case Origin::kScript:
      return "lua";
  }
  return "unknown";
}

void AclLog::add(LogEntry entry, size_t entries_max) {
  cut(&entry.object);
  cut(&entry.user);
  const std::lock_guard lock(mutex_);
  const auto end = entries_.begin() + static_cast<long>(std::min(kLookedThrough, entries_.size()));
  const auto same = std::find_if(entries_.begin(), end,
                                 [&](const LogEntry& other) { return is_same(entry, other); });
  if (same != end) {
    entry.count = same->count + 1;
    bytes_ -= bytes_of(*same);
    entries_.erase(same);
  }
  bytes_ += bytes_of(entry);
  entries_.push_front(std::move(entry));
  while (entries_.size() > entries_max || bytes_ > kBytesMax) {
    bytes_ -= bytes_of(entries_.back());
    entries_.pop_back();
  }
}

std::vector<LogEntry> AclLog::newest(size_t count) const {
  const std::lock_guard lock(mutex_);
  const auto end = entries_.begin() + static_cast<long>(std::min(count, entries_.size()));
  return {entries_.begin(), end};
}

void AclLog::reset() {
  std::deque<LogEntry> forgotten;
  const std::lock_guard lock(mutex_);
  entries_.swap(forgotten);
  bytes_ = 0;
}

void log_denied(AclLog& log, const contract::ClientRegistry& clients, uint64_t client_id,
                size_t entries_max, LogEntry entry) {
  clients.visit(client_id, [&](const contract::Client& client) {
    entry.client = client_line(client, entry.time_ms);
  });
  log.add(std::move(entry), entries_max);
}

}  // namespace ingot::access

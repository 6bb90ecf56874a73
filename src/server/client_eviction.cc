// Adding up clients, and choosing among them.
#include "src/server/client_eviction.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "src/access/client_line.h"
#include "src/metrics/log.h"

namespace ingot::server {

namespace {

// With less no client could get a word in.
constexpr uint64_t kLimitMin = 128 << 10;

// Links of replication have limits of their own.
bool counts(const contract::Client& client) {
  return !client.follows && !client.is_master;
}

}  // namespace

uint64_t clients_limit(const settings::Settings& settings, uint64_t memory_limit) {
  const int64_t wanted = settings.maxmemory_clients;
  if (wanted == 0) return 0;
  const auto bytes = wanted > 0 ? static_cast<uint64_t>(wanted)
                                : memory_limit / 100 * static_cast<uint64_t>(-wanted);
  return std::max(bytes, kLimitMin);
}

void ClientEviction::tick(int64_t now_ms) {
  const uint64_t limit = limit_bytes_;
  if (limit == 0) return;
  uint64_t total = 0;
  std::vector<std::pair<uint64_t, uint64_t>> largest;  // bytes, id
  clients_.for_each([&](contract::Client& client) {
    if (!counts(client)) return;
    const uint64_t bytes = client.memory_bytes();
    total += bytes;
    if (!client.no_evict) largest.emplace_back(bytes, client.id);
  });
  if (total <= limit) return;
  std::ranges::sort(largest, std::greater());
  for (const auto& [bytes, id] : largest) {
    if (total <= limit) break;
    total -= bytes;
    clients_.visit(id, [&](contract::Client& client) {
      if (!client.kill || client.evicted.exchange(true)) return;
      metrics::log::notice("Evicting client: {}", access::client_line(client, now_ms));
      metrics::add(stats_.evicted_clients);
      client.kill();
    });
  }
}

}  // namespace ingot::server

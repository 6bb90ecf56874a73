// Reading what the machine and the cgroup allow, and sharing the limit out to the parts.
#include "src/server/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ingot::server {

namespace {

// A number in a file; 0 when there is none ("max", or no such file).
uint64_t number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  uint64_t number = 0;
  return in >> number ? number : 0;
}

void tighten(uint64_t* limit, uint64_t other) {
  // cgroup v1 says "no limit" by a number near 2^63.
  if (other == 0 || other > 1ull << 60) return;
  *limit = *limit == 0 ? other : std::min(*limit, other);
}

// Limits count at every level up to the root.
uint64_t cgroup_limit(const std::filesystem::path& root) {
  uint64_t limit = 0;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::istringstream fields(line);
    std::string id, controllers, path;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    bool v2 = controllers.empty();
    if (!v2 && controllers.find("memory") == std::string::npos) continue;
    std::filesystem::path mount = root / (v2 ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    const char* file = v2 ? "memory.max" : "memory.limit_in_bytes";
    for (std::filesystem::path at = path;; at = at.parent_path()) {
      tighten(&limit, number_in(mount / at.relative_path() / file));
      if (!at.has_relative_path()) break;
    }
  }
  return limit;
}

uint64_t physical_bytes() {
  static const uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Measured: the process needs 50 to 90 MB besides the engine's cache.
constexpr uint64_t kOverhead = 64ull << 20;

}  // namespace

MachineMemory read_machine(const std::filesystem::path& root) {
  return {.total_bytes = physical_bytes(), .cgroup_bytes = cgroup_limit(root)};
}

uint64_t memory_limit(const settings::Settings& settings, const MachineMemory& machine) {
  uint64_t available = machine.total_bytes;
  if (machine.cgroup_bytes != 0) available = std::min(available, machine.cgroup_bytes);
  // Caches lay out their tables for what they may hold.
  if (settings.maxmemory != 0) return std::min(settings.maxmemory, available);
  return available / 2;
}

MemoryShares share_out(const settings::Settings& settings, uint64_t limit_bytes) {
  constexpr uint64_t kEngineMin = 8ull << 20;
  constexpr uint64_t kRecordShare = 4;
  constexpr uint64_t kClientsMin = 32ull << 20;
  constexpr uint64_t kCommandMin = 16ull << 20;
  uint64_t rest = limit_bytes > 2 * kOverhead ? limit_bytes - kOverhead : limit_bytes / 2;
  uint64_t cache = std::max(kEngineMin, rest / 4 * 3);
  if (settings.cache_size != 0) cache = std::min(settings.cache_size, physical_bytes());
  uint64_t records = cache / kRecordShare;
  const uint64_t command = std::max(kCommandMin, limit_bytes / 16);
  return {.engine_bytes = std::max(kEngineMin, cache - records),
          .record_bytes = records,
          .output_bytes = std::max(kClientsMin, limit_bytes / 4),
          .input_bytes = std::max(kClientsMin, limit_bytes / 4),
          .command_bytes = command,
          .transaction_bytes = 2 * command,
          .changes_bytes = command / 2 * 7};
}

uint64_t record_bytes_now(const settings::Settings& settings, uint64_t limit_bytes,
                          const MemoryInUse& in_use) {
  const MemoryShares shares = share_out(settings, limit_bytes);
  if (settings.cache_size != 0) return shares.record_bytes;
  const auto less = [](uint64_t from, uint64_t bytes) { return from - std::min(from, bytes); };
  const uint64_t most = less(limit_bytes, std::max(kOverhead, limit_bytes / 16 * 3));
  const uint64_t others = less(in_use.allocated_bytes, in_use.engine_bytes + in_use.record_bytes);
  const uint64_t room = less(most, others + std::max(shares.engine_bytes, in_use.engine_bytes));
  // Holes in the allocator's pages are memory, too. What is evicted then may leave more of them.
  const bool may_grow = in_use.resident_bytes < less(limit_bytes, limit_bytes / 16);
  const uint64_t most_records = may_grow ? room : std::min(room, in_use.record_bytes_max);
  return std::max(shares.record_bytes, most_records);
}

}  // namespace ingot::server

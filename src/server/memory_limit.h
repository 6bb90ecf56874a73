// The one number that bounds memory, and how it is shared out. Pure, but for read_machine().
#pragma once

#include <cstdint>
#include <filesystem>

#include "src/settings/settings.h"

namespace ingot::server {

struct MachineMemory {
  uint64_t total_bytes = 0;
  uint64_t cgroup_bytes = 0;  // the tightest limit above this process; 0: none
};
// `root`: where /proc and /sys are (tests).
MachineMemory read_machine(const std::filesystem::path& root = "/");

// maxmemory, or for 0 half of what the machine or the cgroup has.
uint64_t memory_limit(const settings::Settings& settings, const MachineMemory& machine);

// The parts of the limit; the rest is for code, stacks, indexes and the allocator's overhead.
struct MemoryShares {
  uint64_t engine_bytes = 0;  // block cache with memtables and filters
  uint64_t record_bytes = 0;  // hot metadata records; with the engine's they make cache-size
  uint64_t output_bytes = 0;  // unsent replies of all clients
  uint64_t input_bytes = 0;   // their unparsed input
};
MemoryShares share_out(const settings::Settings& settings, uint64_t limit_bytes);

}  // namespace ingot::server

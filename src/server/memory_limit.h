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

// maxmemory, but no more than the machine or the cgroup has; for 0 half of that.
uint64_t memory_limit(const settings::Settings& settings, const MachineMemory& machine);

// The parts of the limit; the rest is for code, stacks, indexes and the allocator's overhead.
struct MemoryShares {
  uint64_t engine_bytes = 0;  // block cache with memtables and filters
  // Hot records and images, at least; with the engine's they make cache-size.
  uint64_t record_bytes = 0;
  uint64_t output_bytes = 0;  // unsent replies of all clients
  uint64_t input_bytes = 0;   // their input, until it is answered
  // What one command may bring of that: the writer has it in its overlay, in the engine's batch and
  // in the memtable as well. What one transaction may bring and answer, and what its changes may
  // take with all that finds and undoes them.
  uint64_t command_bytes = 0;
  uint64_t transaction_bytes = 0;
  uint64_t changes_bytes = 0;
};
MemoryShares share_out(const settings::Settings& settings, uint64_t limit_bytes);

struct MemoryInUse {
  uint64_t allocated_bytes = 0;  // of it:
  uint64_t engine_bytes = 0;
  uint64_t record_bytes = 0;
  uint64_t record_bytes_max = 0;  // what these might have had so far
  uint64_t resident_bytes = 0;    // by the allocator, with its holes
};
// What hot records and images may take now: their share, and what neither the engine's share nor
// anybody else needs of the limit but for a reserve. They give it back as others come to need it.
uint64_t record_bytes_now(const settings::Settings& settings, uint64_t limit_bytes,
                          const MemoryInUse& in_use);

}  // namespace ingot::server

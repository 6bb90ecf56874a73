// What memory the process uses, as the allocator and the kernel count it. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::server {

struct MemoryUsage {
  uint64_t used = 0;      // bytes in live allocations; without jemalloc the resident ones
  uint64_t resident = 0;  // of the process
  // The allocator's own pages, with what is free in them; 0 without jemalloc.
  uint64_t allocator_active = 0;
  uint64_t allocator_resident = 0;
};

MemoryUsage memory_usage();
// "jemalloc-5.3.0", or "libc".
std::string allocator_name();
uint64_t system_memory_bytes();

}  // namespace ingot::server

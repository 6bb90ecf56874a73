// What memory the process uses, as the allocator and the kernel count it, and how soon the
// allocator gives back what it does not. Any thread.
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
// What the allocator has to tell of itself, as a text of its own. Takes its locks for a moment.
std::string allocator_report();
uint64_t system_memory_bytes();

// Makes the allocator give unused pages back soon, so that a burst does not stand beside the
// memory limit for long; with `background_thread` (jemalloc-bg-thread) also when the thread that
// freed them rests. After daemonize(). Does nothing without jemalloc.
void set_memory_return(bool background_thread);
void return_memory_now();

// Unused pages do not wait where the process has more than its memory limit and much of that is
// free: who makes and frees 100 MB again and again would leave as much beside it. One thread.
class ExcessReturn {
 public:
  void look_at(const MemoryUsage& usage, uint64_t limit_bytes);

 private:
  static constexpr int kEagerLooks = 10;
  int eager_looks_ = 0;  // so many more, unless there is too much again
};

}  // namespace ingot::server

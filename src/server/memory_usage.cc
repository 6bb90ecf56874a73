// jemalloc is asked when the program is linked with it, which the build decides: hence the weak
// symbol. Figures of the kernel come from /proc.
#include "src/server/memory_usage.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

extern "C" int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value,
                       size_t new_bytes) __attribute__((weak));

extern "C" void malloc_stats_print(void (*write)(void* to, const char* text), void* to,
                                   const char* options) __attribute__((weak));

namespace ingot::server {
namespace {

// jemalloc's own 10 s let the copying of a 96 MB value hold 300 MB.
constexpr ssize_t kReturnAfterMs = 150;

uint64_t allocator_figure(const char* name) {
  size_t value = 0;
  size_t bytes = sizeof value;
  return mallctl(name, &value, &bytes, nullptr, 0) == 0 ? value : 0;
}

unsigned arenas() {
  unsigned count = 0;
  size_t bytes = sizeof count;
  mallctl("arenas.narenas", &count, &bytes, nullptr, 0);
  return count;
}

// How long free pages wait before they go back.
void set_decay(ssize_t wait_ms) {
  if (mallctl == nullptr) return;
  mallctl("arenas.dirty_decay_ms", nullptr, nullptr, &wait_ms, sizeof wait_ms);
  for (unsigned arena = 0; arena < arenas(); ++arena) {
    const std::string name = "arena." + std::to_string(arena) + ".dirty_decay_ms";
    mallctl(name.c_str(), nullptr, nullptr, &wait_ms, sizeof wait_ms);
  }
}

uint64_t page_bytes() {
  static const long bytes = sysconf(_SC_PAGESIZE);
  return static_cast<uint64_t>(bytes);
}

uint64_t resident_bytes() {
  uint64_t size = 0;
  uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * page_bytes();
}

}  // namespace

MemoryUsage memory_usage() {
  MemoryUsage usage;
  usage.resident = resident_bytes();
  usage.used = usage.resident;
  if (mallctl != nullptr) {
    // The figures are of the last epoch.
    uint64_t epoch = 1;
    size_t bytes = sizeof epoch;
    mallctl("epoch", &epoch, &bytes, &epoch, sizeof epoch);
    usage.used = allocator_figure("stats.allocated");
    usage.allocator_active = allocator_figure("stats.active");
    usage.allocator_resident = allocator_figure("stats.resident");
  }
  return usage;
}

std::string allocator_name() {
  if (mallctl == nullptr) return "libc";
  const char* version = "";
  size_t bytes = sizeof version;  // NOLINT(bugprone-sizeof-expression): of the pointer
  mallctl("version", &version, &bytes, nullptr, 0);
  const std::string text(version);  // "5.3.0-0-g54eaed1d..."
  return "jemalloc-" + text.substr(0, text.find('-'));
}

std::string allocator_report() {
  std::string report;
  if (malloc_stats_print != nullptr) {
    malloc_stats_print([](void* to, const char* text) { *static_cast<std::string*>(to) += text; },
                       &report, nullptr);
    return report;
  }
  char* text = nullptr;
  size_t bytes = 0;
  std::FILE* const stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return report;
  malloc_info(0, stream);
  std::fclose(stream);
  report.assign(text, bytes);
  std::free(text);
  return report;
}

void set_memory_return(bool background_thread) {
  if (mallctl == nullptr) return;
  set_decay(kReturnAfterMs);
  mallctl("background_thread", nullptr, nullptr, &background_thread, sizeof background_thread);
}

void return_memory_now() {
  if (mallctl == nullptr) return;
  // The number that stands for all arenas together.
  const std::string name = "arena." + std::to_string(arenas()) + ".purge";
  mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
}

void ExcessReturn::look_at(const MemoryUsage& usage, uint64_t limit_bytes) {
  const uint64_t free =
      usage.allocator_resident - std::min(usage.allocator_resident, usage.allocator_active);
  if (usage.resident > limit_bytes + limit_bytes / 4 && free > limit_bytes / 4) {
    if (eager_looks_ == 0) set_decay(0);
    eager_looks_ = kEagerLooks;
    return_memory_now();
  } else if (eager_looks_ > 0 && --eager_looks_ == 0) {
    set_decay(kReturnAfterMs);
  }
}

uint64_t system_memory_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
}

}  // namespace ingot::server

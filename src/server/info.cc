// Chooses the sections of INFO and takes the samples behind its rates.
#include "src/server/info.h"

#include <chrono>

#include "net/server.h"
#include "src/contract/args.h"
#include "src/data/reader_pool.h"
#include "src/metrics/stats.h"
#include "src/server/info_sections.h"
#include "src/server/memory_usage.h"
#include "src/settings/config.h"

namespace ingot::server {
namespace {

bool is_asked_for(const InfoSection& section, std::span<const std::string_view> names) {
  using contract::equals_ignore_case;
  if (names.empty()) return section.by_default;
  for (const std::string_view name : names) {
    if (equals_ignore_case(name, section.name) || equals_ignore_case(name, "all") ||
        equals_ignore_case(name, "everything") ||
        (section.by_default && equals_ignore_case(name, "default"))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string info_text(const InfoSource& source, std::span<const std::string_view> sections) {
  std::string text;
  InfoFields fields(text);
  for (const auto group : {redis_info_sections(), own_info_sections()}) {
    for (const InfoSection& section : group) {
      if (!is_asked_for(section, sections)) continue;
      if (!text.empty()) text += "\r\n";
      fmt::format_to(std::back_inserter(text), "# {}\r\n", section.title);
      section.write(source, fields);
    }
  }
  return text;
}

void take_sample(const data::Services& services, const net::Server& net,
                 const MemoryUsage& memory) {
  metrics::Stats& stats = services.stats;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  stats.sampler.sample(std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
                       {stats.commands.load(), net.bytes_in(), net.bytes_out(),
                        services.readers.busy_micros(), stats.writer_busy_micros.load()});
  metrics::raise_to(stats.memory_peak, memory.used);
}

uint64_t keys_whose_filters_fit(uint64_t cache_bytes, int bloom_bits) {
  return bloom_bits > 0 ? cache_bytes * 8 / static_cast<uint64_t>(bloom_bits) : 0;
}

}  // namespace ingot::server

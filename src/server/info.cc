// Chooses the sections of INFO and takes the samples behind its rates.
#include "src/server/info.h"

#include <chrono>

#include "net/server.h"
#include "src/command/args.h"
#include "src/exec/reader_pool.h"
#include "src/server/config.h"
#include "src/server/info_sections.h"
#include "src/server/memory_usage.h"
#include "src/server/stats.h"

namespace ingot::server {
namespace {

bool is_asked_for(const InfoSection& section, std::span<const std::string_view> names) {
  using command::equals_ignore_case;
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

std::string info_text(exec::Services& services, types::KeyReader& keys,
                      std::span<const std::string_view> sections) {
  const auto settings = services.config.settings();
  const InfoSource source{services, keys, *settings};
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

void take_sample(exec::Services& services) {
  Stats& stats = services.stats;
  const net::Server* net = services.net;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  stats.sampler.sample(std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
                       {stats.commands.load(), net != nullptr ? net->bytes_in() : 0,
                        net != nullptr ? net->bytes_out() : 0, services.readers.busy_micros(),
                        stats.writer_busy_micros.load()});
  raise_to(stats.memory_peak, memory_usage().used);
}

uint64_t keys_whose_filters_fit(uint64_t cache_bytes, int bloom_bits) {
  return bloom_bits > 0 ? cache_bytes * 8 / static_cast<uint64_t>(bloom_bits) : 0;
}

}  // namespace ingot::server

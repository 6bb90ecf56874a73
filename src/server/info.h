// The text of INFO: Redis' sections and field names wherever they have a meaning here, so that its
// exporters and dashboards work, and two sections of our own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/server/info_sections.h"
#include "src/server/memory_usage.h"

namespace ingot::server {

// `sections`: as INFO takes them, in any case, "default", "all" and "everything" among them; none:
// the default ones. Unknown ones are left out. Any thread; the source's `keys` may read the disk,
// for the number of keys.
std::string info_text(const InfoSource& source, std::span<const std::string_view> sections);

// Takes one sample for the rates and for the peak of `memory`: to be called every
// Sampler::kPeriodMs. Any thread.
void take_sample(const data::Services& services, const net::Server& net, const MemoryUsage& memory);

// Above this many keys their filters no longer fit the engine's cache, and reads of absent keys
// begin to need the disk. 0: without filters.
uint64_t keys_whose_filters_fit(uint64_t cache_bytes, int bloom_bits);

}  // namespace ingot::server

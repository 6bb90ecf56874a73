// The page that Prometheus reads: the figures of INFO with the latencies of commands and the
// engine's levels, in its text format, version 0.0.4.
#pragma once

#include <string>

#include "src/server/info_sections.h"

namespace ingot::server {

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// Any thread. Tells estimates of keys where counting them would take a walk.
std::string metrics_page(const InfoSource& source);

}  // namespace ingot::server

// What LATENCY tells people: a graph of one kind of event, and what to think of all of them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "src/metrics/latency_monitor.h"

namespace ingot::commands {

std::string latency_graph(std::string_view name, const metrics::LatencyMonitor::Event& event,
                          int64_t now_s);

// `enabled`: latency-monitor-threshold is not 0.
std::string latency_report(const std::map<std::string_view, metrics::LatencyMonitor::Event>& events,
                           bool enabled);

}  // namespace ingot::commands

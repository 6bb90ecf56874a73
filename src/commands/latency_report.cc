// Columns of characters, and advice by what kinds of events there were.
#include "src/commands/latency_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <vector>

namespace ingot::commands {
namespace {

using metrics::LatencyMonitor;

constexpr size_t kColumns = 80;
constexpr size_t kRows = 4;
constexpr std::string_view kTops = "_o#";  // how far a column reaches into its highest row

std::string age(int64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86400) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

struct Summary {
  uint64_t lowest = 0;
  uint64_t highest = 0;
  uint64_t mean = 0;
  uint64_t deviation = 0;  // mean absolute
  double period_s = 0;     // between two samples
};

Summary summary_of(const LatencyMonitor::Event& event) {
  Summary summary;
  const auto& samples = event.samples;
  const auto [low, high] = std::ranges::minmax(samples, {}, &LatencyMonitor::Sample::ms);
  summary.lowest = low.ms;
  summary.highest = high.ms;
  for (const auto& sample : samples) summary.mean += sample.ms;
  summary.mean /= samples.size();
  for (const auto& sample : samples) {
    summary.deviation += std::max(sample.ms, summary.mean) - std::min(sample.ms, summary.mean);
  }
  summary.deviation /= samples.size();
  if (samples.size() > 1) {
    summary.period_s = static_cast<double>(samples.back().at_s - samples.front().at_s) /
                       static_cast<double>(samples.size() - 1);
  }
  return summary;
}

struct Advice {
  std::string_view event;
  std::string_view text;
};
constexpr Advice kAdvice[] = {
    {metrics::latency::kCommand,
     "Some commands were slow to execute. SLOWLOG GET tells which; LATENCY HISTOGRAM how often."},
    {metrics::latency::kFastCommand,
     "Commands that take constant time were slow to execute: the processor is busy with other "
     "work, or the machine is short of memory and swaps."},
    {metrics::latency::kQueue,
     "Writes waited for the writer, which runs one after the other: large transactions, scripts or "
     "pipelines of somebody else, or a slow log in front of them. Compare with the event commit."},
    {metrics::latency::kDiskRead,
     "Commands waited for the disk. Raise maxmemory if engine_cache_hit_rate is low, and "
     "reader-threads if reader_queue_depth is high; look at the disk's queue."},
    {metrics::latency::kCommit,
     "Writing to the log was slow. With 'appendfsync always' each group waits for an fsync; "
     "everysec waits only while the disk is two seconds behind. If engine_writes_stopped was 1, "
     "compaction cannot keep up with the writes: see compaction-threads and compaction-rate."},
    {metrics::latency::kExpireCycle,
     "Many keys expired at the same time. Spread their times, or expect such moments."},
};

}  // namespace

std::string latency_graph(std::string_view name, const LatencyMonitor::Event& event,
                          int64_t now_s) {
  const Summary summary = summary_of(event);
  std::string text = fmt::format("{} - high {} ms, low {} ms (all time high {} ms)\n", name,
                                 summary.highest, summary.lowest, event.max_ms);
  text.append(kColumns, '-').push_back('\n');
  const size_t columns = std::min(event.samples.size(), kColumns);
  std::array<std::string, kRows> rows;  // the lowest first
  std::vector<std::string> ages;
  size_t longest = 0;
  for (size_t i = event.samples.size() - columns; i < event.samples.size(); ++i) {
    const LatencyMonitor::Sample& sample = event.samples[i];
    const uint64_t range = std::max<uint64_t>(1, summary.highest - summary.lowest);
    const size_t level = (sample.ms - summary.lowest) * (kRows * kTops.size() - 1) / range;
    const size_t top = level / kTops.size();
    for (size_t row = 0; row < kRows; ++row) {
      rows[row].push_back(row < top ? '|' : row == top ? kTops[level % kTops.size()] : ' ');
    }
    ages.push_back(age(std::max<int64_t>(0, now_s - sample.at_s)));
    longest = std::max(longest, ages.back().size());
  }
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) text.append(*row).push_back('\n');
  text.append(columns, ' ').push_back('\n');
  for (size_t at = 0; at < longest; ++at) {
    for (const std::string& each : ages) text.push_back(at < each.size() ? each[at] : ' ');
    text.push_back('\n');
  }
  return text;
}

std::string latency_report(const std::map<std::string_view, LatencyMonitor::Event>& events,
                           bool enabled) {
  if (!enabled && events.empty()) {
    return "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Redis "
           "instance. You may use \"CONFIG SET latency-monitor-threshold <milliseconds>.\" in "
           "order to enable it.\n";
  }
  if (events.empty()) {
    return "Dave, no latency spike was observed during the lifetime of this Redis instance, not "
           "in the slightest bit.\n";
  }
  std::string text =
      "Dave, I have observed latency spikes in this Redis instance. You don't mind talking about "
      "it, do you Dave?\n\n";
  int number = 0;
  for (const auto& [name, event] : events) {
    const Summary summary = summary_of(event);
    fmt::format_to(std::back_inserter(text),
                   "{}. {}: {} latency spikes (average {}ms, mean deviation {}ms, period {:.2f} "
                   "sec). Worst all time event {}ms.\n",
                   ++number, name, event.samples.size(), summary.mean, summary.deviation,
                   summary.period_s, event.max_ms);
  }
  text += "\nI have a few advices for you:\n\n";
  for (const Advice& advice : kAdvice) {
    if (events.contains(advice.event)) text.append("- ").append(advice.text).push_back('\n');
  }
  return text;
}

}  // namespace ingot::commands

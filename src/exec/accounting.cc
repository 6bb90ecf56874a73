// Counting runs that were kept, and refusals.
#include "src/exec/accounting.h"

#include <fmt/format.h>

#include "src/contract/channels.h"
#include "src/contract/shown_arguments.h"
#include "src/data/store.h"
#include "src/exec/handlers.h"
#include "src/metrics/stats.h"
#include "src/settings/setting_values.h"

namespace ingot::exec {
namespace {

bool is_diverted(const net::Command& command, size_t index) {
  return command.sink != nullptr && command.diverted_index == index;
}

// As Redis shortens them.
std::vector<std::string> shortened(const contract::CommandRow& row, const net::Command& command) {
  const contract::Args args = command.args;
  constexpr size_t kArguments = 32;
  constexpr size_t kBytes = 128;
  const size_t most = args.size() <= kArguments ? args.size() : kArguments - 1;
  std::vector<std::string> kept;
  for (const std::string_view arg : contract::shown_arguments(row, args, most)) {
    if (is_diverted(command, kept.size())) {  // its bytes are in the engine
      kept.push_back(fmt::format("... ({} more bytes)", long_word(command).bytes));
      continue;
    }
    kept.emplace_back(arg.substr(0, kBytes));
    if (arg.size() <= kBytes) continue;
    kept.back() += fmt::format("... ({} more bytes)", arg.size() - kBytes);
  }
  if (most < args.size()) {
    kept.push_back(fmt::format("... ({} more arguments)", args.size() - most));
  }
  return kept;
}

std::string monitor_line(const contract::CommandRow& row, const Accounting::Run& run) {
  constexpr size_t kBytesMax = 1 << 20;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const std::string sender = run.in_script        ? "lua"
                             : run.client.is_unix ? "unix:" + run.client.address
                                                  : run.client.address;
  std::string line =
      fmt::format("{}.{:06} [{} {}]", now / 1'000'000, now % 1'000'000, run.db, sender);
  const contract::Args args = run.command.args;
  size_t index = 0;
  for (const std::string_view arg : contract::shown_arguments(row, args, args.size())) {
    if (is_diverted(run.command, index++)) return line + " ...";
    if (line.size() + arg.size() > kBytesMax) return line + " ...";
    line.append(" ").append(settings::quote_word(arg));
  }
  return line;
}

}  // namespace

void Accounting::kept(const contract::ReplySink& reply, const types::KeyReader* keys) {
  show();
  if (!run_.is_counted) count(reply);
  // Of one that waited, when it began to.
  if (keys != nullptr && !run_.is_shown) count_lookups(*keys);
}

void Accounting::count(const contract::ReplySink& reply) {
  ended_ = Clock::now();
  const auto took = *ended_ - run_.waits_since.value_or(begun_);
  const contract::CommandRow& row = contract::listed_row(run_.row);
  metrics::Stats& stats = services_.data.stats;
  metrics::CommandStats& counted = stats.of(row);
  metrics::add(counted.calls);
  metrics::add(counted.nanos, static_cast<uint64_t>(took.count()));
  metrics::add(stats.commands);
  if (stats.measures_latencies.load(std::memory_order_relaxed)) counted.measure(took);
  note_slowness(row, took);
  if (reply.erred()) {
    metrics::add(counted.failed);
    if (reply.counts_error()) stats.count_error(reply.last_error());
  }
}

void Accounting::waits(const types::KeyReader& keys) {
  show();
  if (!run_.is_shown) count_lookups(keys);
}

void Accounting::count_lookups(const types::KeyReader& keys) {
  if (!run_.row.counts_lookups) return;
  metrics::Stats& stats = services_.data.stats;
  if (!run_.is_counted) {
    metrics::add(stats.keyspace_hits, keys.hits);
    metrics::add(stats.keyspace_misses, keys.misses);
  }
  for (const types::KeyReader::KeyName& missed : keys.missed) {
    const uint32_t forms = services_.couriers.event_kinds() & types::notify::kForms;
    run_.notices.tell(types::Event{.kinds = types::notify::kKeyMiss | forms,
                                   .name = "keymiss",
                                   .db = missed.db,
                                   .key = missed.key});
  }
}

void Accounting::show() {
  if (!services_.channels.any_monitors() || run_.is_shown || std::exchange(shown_, true)) return;
  const contract::CommandRow& row = contract::listed_row(run_.row);
  constexpr uint32_t kHidden = contract::flag::kAdmin | contract::flag::kSkipMonitor;
  // EXEC is told of behind its commands, a script before them.
  if ((row.flags & kHidden) != 0 && !contract::is_exec(row) && !row.runs_script) return;
  run_.notices.tell(types::Shown{.line = monitor_line(row, run_)});
}

void Accounting::note_slowness(const contract::CommandRow& row, Clock::duration took) {
  metrics::Stats& stats = services_.data.stats;
  const bool is_fast = (row.flags & contract::flag::kFast) != 0;
  stats.latency.note(is_fast ? metrics::latency::kFastCommand : metrics::latency::kCommand, took);
  if (run_.waits_since) {
    stats.latency.note(metrics::latency::kDiskRead, begun_ - *run_.waits_since);
  }
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  if ((row.flags & contract::flag::kSkipSlowlog) != 0 || !stats.slow_log.wants(micros)) return;
  stats.slow_log.add({.at_s = services_.data.store.now_ms() / 1000,
                      .micros = micros,
                      .args = shortened(row, run_.command),
                      .address = run_.client.address,
                      .client_name = run_.client.name()});
}

void count_ended_wait(Services& services, const contract::CommandRow& row, bool failed) {
  metrics::CommandStats& counted = services.data.stats.of(contract::listed_row(row));
  metrics::add(counted.calls);
  metrics::add(services.data.stats.commands);
  if (failed) metrics::add(counted.failed);
}

void count_rejected(Services& services, const contract::CommandRow* row, std::string_view error) {
  if (row != nullptr) metrics::add(services.data.stats.of(contract::listed_row(*row)).rejected);
  services.data.stats.count_error(error);
}

std::string rejection(Services& services, const contract::CommandRow* row, std::string_view error) {
  count_rejected(services, row, error);
  if (row == nullptr || !contract::is_exec(*row)) return std::string(error);
  if (error.starts_with("ERR ")) error.remove_prefix(4);
  return "EXECABORT Transaction discarded because of: " + std::string(error);
}

}  // namespace ingot::exec

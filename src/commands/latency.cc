// LATENCY: spikes by the kind of event, and how long commands take.
#include <bit>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/latency_report.h"
#include "src/contract/help.h"
#include "src/contract/table.h"
#include "src/metrics/stats.h"

namespace ingot::commands {
namespace {

using metrics::LatencyMonitor;

LatencyMonitor& monitor(SessionContext& ctx) {
  return ctx.server.stats().latency;
}

void doctor(SessionContext& ctx, Args) {
  ctx.reply.verbatim("txt",
                     latency_report(monitor(ctx).events(), monitor(ctx).threshold_ms() != 0));
}

void graph(SessionContext& ctx, Args args) {
  const auto event = monitor(ctx).find(args[2]);
  if (!event) {
    return ctx.reply.error("ERR No samples available for event '" + std::string(args[2]) + "'");
  }
  ctx.reply.verbatim("txt", latency_graph(args[2], *event, ctx.server.now_ms() / 1000));
}

void history(SessionContext& ctx, Args args) {
  const auto event = monitor(ctx).find(args[2]);
  if (!event) return ctx.reply.array(0);
  ctx.reply.array(event->samples.size());
  for (const LatencyMonitor::Sample& sample : event->samples) {
    ctx.reply.array(2);
    ctx.reply.integer(sample.at_s);
    ctx.reply.integer(static_cast<int64_t>(sample.ms));
  }
}

void latest(SessionContext& ctx, Args) {
  const auto events = monitor(ctx).events();
  ctx.reply.array(events.size());
  for (const auto& [name, event] : events) {
    ctx.reply.array(4);
    ctx.reply.bulk(name);
    ctx.reply.integer(event.samples.back().at_s);
    ctx.reply.integer(static_cast<int64_t>(event.samples.back().ms));
    ctx.reply.integer(static_cast<int64_t>(event.max_ms));
  }
}

void reset(SessionContext& ctx, Args args) {
  size_t forgotten = 0;
  if (args.size() == 2) forgotten = monitor(ctx).forget_all();
  for (const std::string_view event : args.subspan(2)) forgotten += monitor(ctx).forget(event);
  ctx.reply.integer(static_cast<int64_t>(forgotten));
}

struct Named {
  std::string name;  // "config|set"
  const metrics::LatencyHistogram* histogram;
};

void add_measured(const metrics::Stats& stats, const CommandRow* parent, const CommandRow& row,
                  std::vector<Named>* found) {
  const metrics::CommandStats* of_row = stats.find(row);
  const auto* histogram = of_row == nullptr ? nullptr : of_row->latencies();
  if (histogram == nullptr || histogram->count() == 0) return;
  found->push_back({.name = contract::full_name(parent, row), .histogram = histogram});
}

void add_with_subcommands(const metrics::Stats& stats, const CommandRow& row,
                          std::vector<Named>* found) {
  add_measured(stats, nullptr, row, found);
  for (const CommandRow& subcommand : row.subcommands) {
    add_measured(stats, &row, subcommand, found);
  }
}

// Cumulative counts at the powers of two of about a microsecond at which they grow.
void reply_histogram(ReplySink& reply, const metrics::LatencyHistogram& histogram) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  const uint64_t all = histogram.count();
  uint64_t before = 0;
  for (uint64_t bound = 1024; before < all; bound *= 2) {
    const uint64_t up_to = histogram.count_up_to(bound);
    // Redis tells where the bucket of this bound ends.
    const uint64_t bucket_end = bound + bound / 128 - 1;
    if (up_to > before) {
      steps.emplace_back(static_cast<int64_t>(bucket_end / 1000), static_cast<int64_t>(up_to));
    }
    before = up_to;
    if (bound > metrics::LatencyHistogram::kNanosMax) break;
  }
  reply.map(2);
  reply.bulk("calls");
  reply.integer(static_cast<int64_t>(all));
  reply.bulk("histogram_usec");
  reply.map(steps.size());
  for (const auto& [micros, count] : steps) {
    reply.integer(micros);
    reply.integer(count);
  }
}

void histogram(SessionContext& ctx, Args args) {
  const metrics::Stats& stats = ctx.server.stats();
  std::vector<Named> found;
  if (args.size() == 2) {
    for (const CommandRow* row : ctx.table.rows()) add_with_subcommands(stats, *row, &found);
  }
  for (const std::string_view name : args.subspan(2)) {
    const contract::Resolved named = ctx.table.find_named(name);
    if (named.row == nullptr) continue;
    if (named.parent != nullptr) {
      add_measured(stats, named.parent, *named.row, &found);
    } else {
      add_with_subcommands(stats, *named.row, &found);
    }
  }
  ctx.reply.map(found.size());
  for (const Named& each : found) {
    ctx.reply.bulk(each.name);
    reply_histogram(ctx.reply, *each.histogram);
  }
}

void help(SessionContext& ctx, Args) {
  contract::reply_help(
      ctx.reply, "LATENCY",
      {"DOCTOR", "    Return a human readable latency analysis report.", "GRAPH <event>",
       "    Return an ASCII latency graph for the <event> class.", "HISTORY <event>",
       "    Return time-latency samples for the <event> class.", "LATEST",
       "    Return the latest latency samples for all events.", "RESET [<event> ...]",
       "    Reset latency data of one or more <event> classes.",
       "    (default: reset all data for all event classes)", "HISTOGRAM [COMMAND ...]",
       "    Return a cumulative distribution of latencies in the format of a histogram for the "
       "specified command names.",
       "    If no commands are specified then all histograms are replied."});
}

constexpr uint32_t kLatencyFlags = flag::kAdmin | flag::kNoScript | flag::kLoading | flag::kStale;
constexpr std::string_view kLatencyTips =
    "nondeterministic_output,request_policy:all_nodes,response_policy:special";

constexpr CommandRow kSubcommandTable[] = {
    {.name = "doctor",
     .arity = 2,
     .flags = kLatencyFlags,
     .since = "2.8.13",
     .complexity = "O(1)",
     .summary = "What the spikes may come from",
     .tips = kLatencyTips,
     .handler = doctor},
    {.name = "graph",
     .arity = 3,
     .flags = kLatencyFlags,
     .since = "2.8.13",
     .complexity = "O(1)",
     .summary = "The spikes of one kind, drawn",
     .tips = kLatencyTips,
     .arguments = "event:string",
     .handler = graph},
    {.name = "help",
     .arity = 2,
     .flags = flag::kLoading | flag::kStale,
     .since = "2.8.13",
     .complexity = "O(1)",
     .summary = "What the subcommands do",
     .handler = help},
    {.name = "histogram",
     .arity = -2,
     .flags = kLatencyFlags,
     .since = "7.0.0",
     .complexity = "O(N) with N commands that are told of",
     .summary = "How long commands take",
     .tips = kLatencyTips,
     .arguments = "command:string?*",
     .handler = histogram},
    {.name = "history",
     .arity = 3,
     .flags = kLatencyFlags,
     .since = "2.8.13",
     .complexity = "O(1)",
     .summary = "The spikes of one kind, with their times",
     .tips = kLatencyTips,
     .arguments = "event:string",
     .handler = history},
    {.name = "latest",
     .arity = 2,
     .flags = kLatencyFlags,
     .since = "2.8.13",
     .complexity = "O(1)",
     .summary = "The latest spike of each kind",
     .tips = kLatencyTips,
     .handler = latest},
    {.name = "reset",
     .arity = -2,
     .flags = kLatencyFlags,
     .since = "2.8.13",
     .complexity = "O(1)",
     .summary = "Forget the spikes of some kinds, or of all",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded",
     .arguments = "event:string?*",
     .handler = reset},
};
constexpr auto kSubcommands = contract::family(kServerFamily, kSubcommandTable);

constexpr CommandRow kTable[] = {
    {.name = "latency",
     .arity = -2,
     .since = "2.8.13",
     .complexity = "Depends on subcommand.",
     .summary = "Spikes of latency, and how long commands take",
     .subcommands = kSubcommands},
};
constexpr auto kRows = contract::family(kServerFamily, kTable);

}  // namespace

std::span<const CommandRow> latency_rows() {
  return kRows;
}

}  // namespace ingot::commands

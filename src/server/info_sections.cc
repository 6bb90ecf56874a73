// Redis' sections of INFO. Fields of Redis that can only be zero here are given as zero when
// exporters or dashboards read them, and left out otherwise.
#include "src/server/info_sections.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "net/server.h"
#include "src/contract/client_registry.h"
#include "src/contract/running_server.h"
#include "src/contract/table.h"
#include "src/data/collector.h"
#include "src/data/store.h"
#include "src/exec/writer.h"
#include "src/metrics/stats.h"
#include "src/script/scripts.h"
#include "src/server/info_replication.h"
#include "src/server/memory_usage.h"
#include "src/server/process.h"
#include "src/server/ttl_sampler.h"
#include "src/settings/config.h"
#include "src/settings/setting_values.h"

namespace ingot::server {
namespace {

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{}B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  constexpr std::string_view kUnits = "BKMGTP";
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f}{}", value, kUnits[unit]);
}

}  // namespace

void InfoFields::add_bytes(std::string_view name, uint64_t bytes) {
  add(name, bytes);
  add(fmt::format("{}_human", name), human_bytes(bytes));
}

namespace {

int64_t now_micros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// The value that CONFIG GET answers.
std::string setting(const InfoSource& source, std::string_view name) {
  const auto found = source.services.data.config.get(std::array{name});
  return found.empty() ? "" : found.front().second;
}

double ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

std::string os_name() {
  utsname name{};
  uname(&name);
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::string_view supervisor_name(settings::Supervised supervised) {
  switch (supervised) {
    case settings::Supervised::kNo:
      return "no";
    case settings::Supervised::kUpstart:
      return "upstart";
    case settings::Supervised::kSystemd:
      return "systemd";
    case settings::Supervised::kAuto:
      return "unknown";
  }
  return "unknown";
}

// Tells builds apart, as far as their sources and their compiler do.
std::string build_id() {
  constexpr std::string_view kBuild = INGOT_VERSION " " __VERSION__;
  return fmt::format("{:016x}", std::hash<std::string_view>()(kBuild));
}

void write_server(const InfoSource& source, InfoFields& out) {
  const contract::RunningServer& server = source.services.server;
  const int64_t uptime_s = now_micros() / 1000000 - source.services.data.stats.start_ms / 1000;
  // Clients and dashboards choose what they do by the version of Redis.
  out.add("redis_version", "7.0.15");
  out.add("ingot_version", INGOT_VERSION);
  out.add("redis_git_sha1", "00000000");
  out.add("redis_git_dirty", 0);
  out.add("redis_build_id", build_id());
  out.add("redis_mode", "standalone");
  out.add("os", os_name());
  out.add("arch_bits", sizeof(void*) * 8);
  out.add("monotonic_clock", "POSIX clock_gettime");
  out.add("multiplexing_api", "epoll");
  out.add("atomicvar_api", "std::atomic");
  out.add("gcc_version", fmt::format("{}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__));
  out.add("process_id", getpid());
  out.add("process_supervised", supervisor_name(source.settings.supervised));
  out.add("run_id", server.run_id());
  out.add("tcp_port", source.settings.port);
  out.add("server_time_usec", now_micros());
  out.add("uptime_in_seconds", uptime_s);
  out.add("uptime_in_days", uptime_s / 86400);
  out.add("hz", setting(source, "hz"));
  out.add("configured_hz", setting(source, "hz"));
  constexpr int64_t kClockMask = (1 << 24) - 1;  // Redis' clock of uses has 24 bits
  out.add("lru_clock", now_micros() / 1'000'000 & kClockMask);
  out.add("executable", server.executable());
  out.add("config_file", server.config_file());
  out.add("io_threads_active", source.settings.io_threads > 1);
  if (const auto left_ms = server.shutdown_left_ms()) out.add("shutdown_in_milliseconds", *left_ms);
}

void write_clients(const InfoSource& source, InfoFields& out) {
  size_t connected = 0;
  uint64_t input_max = 0;
  uint64_t output_max = 0;
  source.services.clients.for_each([&](contract::Client& client) {
    connected += client.follows ? 0 : 1;
    if (client.connection == nullptr) return;
    input_max = std::max(input_max, client.connection->query_buffer_bytes.load());
    output_max = std::max(output_max, client.connection->output_bytes.load());
  });
  out.add("connected_clients", connected);
  out.add("cluster_connections", 0);
  out.add("maxclients", source.settings.maxclients);
  out.add("client_recent_max_input_buffer", input_max);
  out.add("client_recent_max_output_buffer", output_max);
  const exec::Writer::Figures writer = source.writer.figures();
  out.add("blocked_clients", writer.blocked_clients);
  out.add("tracking_clients", source.services.tracking.clients());
  out.add("clients_in_timeout_table", writer.timed_clients);
}

void write_script_memory(const script::Scripts& scripts, InfoFields& out) {
  const script::Scripts::Figures figures = scripts.figures();
  const auto libraries = scripts.libraries();
  out.add("used_memory_lua", figures.script_lua_bytes);
  out.add("used_memory_vm_eval", figures.script_lua_bytes);
  out.add("used_memory_lua_human", human_bytes(figures.script_lua_bytes));
  out.add("used_memory_scripts_eval", figures.script_bytes);
  out.add("number_of_cached_scripts", figures.scripts);
  out.add("number_of_functions", libraries->function_count());
  out.add("number_of_libraries", libraries->all().size());
  out.add("used_memory_vm_functions", figures.function_lua_bytes);
  out.add_bytes("used_memory_vm_total", figures.script_lua_bytes + figures.function_lua_bytes);
  out.add("used_memory_functions", figures.function_bytes);
  out.add_bytes("used_memory_scripts", figures.script_bytes + figures.function_bytes);
}

void write_memory(const InfoSource& source, InfoFields& out) {
  const contract::MemoryFigures memory = source.services.server.memory_figures();
  const uint64_t grown = memory.used - std::min(memory.used, memory.startup);
  const auto percent = [](double ratio) { return fmt::format("{:.2f}%", ratio * 100); };
  const auto add_ratio = [&](std::string_view name, uint64_t larger, uint64_t smaller) {
    out.add_real(fmt::format("{}_ratio", name), ratio(larger, smaller));
    out.add(fmt::format("{}_bytes", name),
            static_cast<int64_t>(larger) - static_cast<int64_t>(smaller));
  };
  out.add_bytes("used_memory", memory.used);
  out.add_bytes("used_memory_rss", memory.resident);
  out.add_bytes("used_memory_peak", memory.peak);
  out.add("used_memory_peak_perc", percent(ratio(memory.used, memory.peak)));
  out.add("used_memory_overhead", memory.overhead());
  out.add("used_memory_startup", memory.startup);
  out.add("used_memory_dataset", memory.dataset());
  out.add("used_memory_dataset_perc", percent(std::min(1.0, ratio(memory.dataset(), grown))));
  out.add("allocator_allocated", memory.used);
  out.add("allocator_active", memory.allocator_active);
  out.add("allocator_resident", memory.allocator_resident);
  out.add_bytes("total_system_memory", system_memory_bytes());
  write_script_memory(source.services.scripts, out);
  out.add_bytes("maxmemory", source.services.server.memory_limit_bytes());
  out.add("maxmemory_policy", setting(source, "maxmemory-policy"));
  add_ratio("allocator_frag", memory.allocator_active, memory.used);
  add_ratio("allocator_rss", memory.allocator_resident, memory.allocator_active);
  add_ratio("rss_overhead", memory.resident, memory.allocator_resident);
  add_ratio("mem_fragmentation", memory.resident, memory.used);
  out.add_zeros({"mem_not_counted_for_evict", "mem_replication_backlog",
                 "mem_total_replication_buffers", "mem_clients_slaves"});
  out.add("mem_clients_normal", memory.clients);
  out.add_zeros({"mem_cluster_links", "mem_aof_buffer"});
  out.add("mem_allocator", allocator_name());
  out.add_zeros({"active_defrag_running"});
  // A collection that is dropped is freed beside the server's work, always.
  const data::Collector& collector = source.services.data.collector;
  out.add("lazyfree_pending_objects", collector.pending());
  out.add("lazyfreed_objects",
          collector.reclaimed() - source.services.data.stats.reclaimed_before.load());
}

void write_loading(const exec::LoadProgress& loading, int64_t now_s, InfoFields& out) {
  const uint64_t total = std::max<uint64_t>(loading.total_bytes, 1);
  const uint64_t loaded = loading.loaded_bytes;
  const int64_t elapsed_s = now_s - loading.start_s;
  const auto left = static_cast<double>(total - std::min(total, loaded));
  out.add("loading_start_time", loading.start_s.load());
  out.add("loading_total_bytes", total);
  out.add_zeros({"loading_rdb_used_mem"});
  out.add("loading_loaded_bytes", loaded);
  out.add_real("loading_loaded_perc",
               100 * static_cast<double>(loaded) / static_cast<double>(total));
  out.add("loading_eta_seconds", loaded == 0
                                     ? 1
                                     : static_cast<int64_t>(static_cast<double>(elapsed_s) * left /
                                                            static_cast<double>(loaded)));
}

void write_persistence(const InfoSource& source, InfoFields& out) {
  const contract::RunningServer& server = source.services.server;
  const contract::BackgroundWork rewriting = server.rewriting();
  const metrics::Stats& stats = source.services.data.stats;
  const storage::Engine& engine = source.services.data.store.engine();
  const auto status = [](bool ok) { return ok ? "ok" : "err"; };
  const exec::LoadProgress& loading = source.services.loading;
  out.add("loading", loading.on.load());
  out.add_zeros({"async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"});
  out.add_real("current_fork_perc", 0);
  out.add_zeros({"current_save_keys_processed", "current_save_keys_total"});
  out.add("rdb_changes_since_last_save", stats.changes_since_save.load());
  out.add("rdb_bgsave_in_progress", server.saving());
  out.add("rdb_last_save_time", server.last_save_s());
  out.add("rdb_last_bgsave_status", status(server.last_save_ok()));
  out.add("rdb_last_bgsave_time_sec", server.last_save_duration_s());
  out.add("rdb_current_bgsave_time_sec", server.current_save_s());
  out.add("rdb_saves", stats.saves.load());
  out.add_zeros({"rdb_last_cow_size"});
  out.add("rdb_last_load_keys_expired", loading.keys_expired.load());
  out.add("rdb_last_load_keys_loaded", loading.keys_loaded.load());
  // The engine and its log take the part of Redis' append-only file.
  const bool is_shown = setting(source, "appendonly") == "yes";
  out.add("aof_enabled", is_shown);
  out.add("aof_rewrite_in_progress", rewriting.running);
  out.add("aof_rewrite_scheduled", 0);
  out.add("aof_last_rewrite_time_sec", rewriting.last_s);
  out.add("aof_current_rewrite_time_sec", rewriting.running_s);
  out.add("aof_last_bgrewrite_status", status(rewriting.last_ok));
  out.add("aof_rewrites", rewriting.done);
  out.add("aof_rewrites_consecutive_failures", rewriting.failures_in_row);
  out.add("aof_last_write_status", status(engine.health() == storage::Health::kHealthy));
  out.add_zeros({"aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"});
  if (is_shown) {
    out.add("aof_current_size", engine.stats().disk_bytes);
    out.add("aof_base_size", rewriting.disk_bytes);
    out.add_zeros({"aof_pending_rewrite", "aof_buffer_length"});
    out.add("aof_pending_bio_fsync", source.writer.figures().unsynced_ms > 0);
  }
  out.add("aof_delayed_fsync", stats.sync_waits.load());
  if (loading.on) write_loading(loading, server.now_ms() / 1000, out);
}

void write_stats(const InfoSource& source, InfoFields& out) {
  const metrics::Stats& stats = source.services.data.stats;
  const metrics::Sampler& sampler = stats.sampler;
  const net::Server& net = source.net;
  const auto kbps = [&](metrics::Meter meter) { return sampler.per_second(meter) / 1024; };
  out.add("total_connections_received", stats.connections_received.load());
  out.add("total_commands_processed", stats.commands.load());
  out.add_real("instantaneous_ops_per_sec", sampler.per_second(metrics::Meter::kCommands), 0);
  out.add("total_net_input_bytes", net.bytes_in() - stats.bytes_in_before.load());
  out.add("total_net_output_bytes", net.bytes_out() - stats.bytes_out_before.load());
  out.add("client_output_buffer_limit_disconnections", net.output_limit_disconnections());
  out.add_zeros({"total_net_repl_input_bytes", "total_net_repl_output_bytes"});
  out.add_real("instantaneous_input_kbps", kbps(metrics::Meter::kBytesIn));
  out.add_real("instantaneous_output_kbps", kbps(metrics::Meter::kBytesOut));
  out.add_real("instantaneous_input_repl_kbps", 0);
  out.add_real("instantaneous_output_repl_kbps", 0);
  out.add("rejected_connections", stats.connections_rejected.load());
  out.add("sync_full", stats.full_syncs.load());
  out.add("sync_partial_ok", stats.partial_syncs.load());
  out.add("sync_partial_err", stats.refused_partial_syncs.load());
  out.add("expired_keys", stats.expired_keys.load());
  out.add_real("expired_stale_perc", 0);
  out.add("expired_time_cap_reached_count", stats.expire_batches_full.load());
  out.add("expire_cycle_cpu_milliseconds", stats.expire_micros.load() / 1000);
  out.add("evicted_keys", 0);
  out.add("evicted_clients", stats.evicted_clients.load());
  out.add_zeros({"total_eviction_exceeded_time", "current_eviction_exceeded_time"});
  out.add("keyspace_hits", stats.keyspace_hits.load());
  out.add("keyspace_misses", stats.keyspace_misses.load());
  const contract::Channels& channels = source.services.channels;
  out.add("pubsub_channels", channels.size(contract::ChannelKind::kChannel));
  out.add("pubsub_patterns", channels.size(contract::ChannelKind::kPattern));
  out.add("pubsubshard_channels", channels.size(contract::ChannelKind::kShard));
  out.add_zeros({"latest_fork_usec", "total_forks", "migrate_cached_sockets",
                 "slave_expires_tracked_keys", "active_defrag_hits", "active_defrag_misses",
                 "active_defrag_key_hits", "active_defrag_key_misses", "total_active_defrag_time",
                 "current_active_defrag_time"});
  const contract::Tracking& tracking = source.services.tracking;
  out.add("tracking_total_keys", tracking.remembered.keys.load());
  out.add("tracking_total_items", tracking.remembered.items.load());
  out.add("tracking_total_prefixes", tracking.prefixes());
  out.add("unexpected_error_replies", 0);
  out.add("total_error_replies", stats.error_replies.load());
  out.add("dump_payload_sanitizations", 0);
  const uint64_t reads = net.reads() - stats.reads_before.load();
  const uint64_t writes = net.writes() - stats.writes_before.load();
  const bool threaded = source.settings.io_threads > 1;
  out.add("total_reads_processed", reads);
  out.add("total_writes_processed", writes);
  out.add("io_threaded_reads_processed", threaded ? reads : 0);
  out.add("io_threaded_writes_processed", threaded ? writes : 0);
  out.add_zeros({"reply_buffer_shrinks", "reply_buffer_expands"});
}

void write_replication(const InfoSource& source, InfoFields& out) {
  const auto link = source.services.server.master_link();
  out.add("role", link ? "slave" : "master");
  if (link) write_master_link(source, *link, out);
  write_followers(source, out);
}

void write_cpu(const InfoSource&, InfoFields& out) {
  const auto add = [&](std::string_view suffix, int who) {
    rusage usage{};
    getrusage(who, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    out.add_real(fmt::format("used_cpu_sys{}", suffix), seconds(usage.ru_stime), 6);
    out.add_real(fmt::format("used_cpu_user{}", suffix), seconds(usage.ru_utime), 6);
  };
  add("", RUSAGE_SELF);
  add("_children", RUSAGE_CHILDREN);
  const MainThreadTimes times = main_thread_times();
  out.add_real("used_cpu_sys_main_thread", times.system_s, 6);
  out.add_real("used_cpu_user_main_thread", times.user_s, 6);
}

void write_nothing(const InfoSource&, InfoFields&) {}

void write_commandstats(const InfoSource& source, InfoFields& out) {
  const auto add = [&](const contract::CommandRow* parent, const contract::CommandRow& row) {
    const metrics::CommandStats* stats = source.services.data.stats.find(row);
    if (stats == nullptr) return;
    const uint64_t calls = stats->calls.load();
    const uint64_t micros = stats->nanos.load() / 1000;
    const uint64_t rejected = stats->rejected.load();
    const uint64_t failed = stats->failed.load();
    if (calls + rejected + failed == 0) return;
    out.add("cmdstat_" + full_name(parent, row),
            fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                        calls, micros, ratio(micros, calls), rejected, failed));
  };
  for (const contract::CommandRow* row : source.services.table.rows()) {
    add(nullptr, *row);
    for (const contract::CommandRow& subcommand : row->subcommands) add(row, subcommand);
  }
}

void write_errorstats(const InfoSource& source, InfoFields& out) {
  for (const auto& [name, count] : source.services.data.stats.errors()) {
    out.add("errorstat_" + name, fmt::format("count={}", count));
  }
}

void write_latencystats(const InfoSource& source, InfoFields& out) {
  const auto add = [&](const contract::CommandRow* parent, const contract::CommandRow& row) {
    const metrics::CommandStats* stats = source.services.data.stats.find(row);
    const auto* latencies = stats == nullptr ? nullptr : stats->latencies();
    if (latencies == nullptr || latencies->count() == 0) return;
    std::string values;
    for (const double percent : source.settings.latency_tracking_percentiles) {
      fmt::format_to(std::back_inserter(values), "{}p{}={:.3f}", values.empty() ? "" : ",",
                     settings::format_percentile(percent),
                     static_cast<double>(latencies->percentile(percent)) / 1000);
    }
    out.add("latency_percentiles_usec_" + full_name(parent, row), values);
  };
  if (!source.settings.latency_tracking) return;
  for (const contract::CommandRow* row : source.services.table.rows()) {
    add(nullptr, *row);
    for (const contract::CommandRow& subcommand : row->subcommands) add(row, subcommand);
  }
}

void write_cluster(const InfoSource&, InfoFields& out) {
  out.add("cluster_enabled", 0);
}

void write_keyspace(const InfoSource& source, InfoFields& out) {
  for (size_t db = 0; db < source.keys.databases().size(); ++db) {
    const storage::KeyCounts counts = source.keys.counts(static_cast<int>(db));
    if (counts.keys == 0) continue;
    const int64_t average_ms =
        counts.expires == 0 ? 0 : source.ttl.average_ms(source.keys.databases()[db]);
    out.add(fmt::format("db{}", db),
            fmt::format("keys={},expires={},avg_ttl={}", counts.keys, counts.expires, average_ms));
    if (counts.expires != 0) source.ttl.look_again();
  }
}

constexpr InfoSection kSections[] = {
    {"server", "Server", true, write_server},
    {"clients", "Clients", true, write_clients},
    {"memory", "Memory", true, write_memory},
    {"persistence", "Persistence", true, write_persistence},
    {"stats", "Stats", true, write_stats},
    {"replication", "Replication", true, write_replication},
    {"cpu", "CPU", true, write_cpu},
    {"modules", "Modules", true, write_nothing},
    {"commandstats", "Commandstats", false, write_commandstats},
    {"errorstats", "Errorstats", true, write_errorstats},
    {"latencystats", "Latencystats", false, write_latencystats},
    {"cluster", "Cluster", true, write_cluster},
    {"keyspace", "Keyspace", true, write_keyspace},
};

}  // namespace

std::span<const InfoSection> redis_info_sections() {
  return kSections;
}

}  // namespace ingot::server

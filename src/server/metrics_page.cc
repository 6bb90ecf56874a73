// Families of metrics, each with its help, and the samples of each.
#include "src/server/metrics_page.h"

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "src/contract/client_registry.h"
#include "src/contract/running_server.h"
#include "src/contract/table.h"
#include "src/data/collector.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/metrics/stats.h"
#include "src/server/memory_usage.h"

namespace ingot::server {
namespace {

using Label = std::pair<std::string_view, std::string_view>;
using Labels = std::initializer_list<Label>;

constexpr double kMicro = 1e-6;

class Page {
 public:
  explicit Page(std::string& out) : out_(out) {}

  // Samples follow until the next family.
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(end(), "# HELP ingot_{} {}\n# TYPE ingot_{} {}\n", name, help, name, type);
  }
  template <typename Value>
  void sample(Labels labels, const Value& value, std::string_view suffix = {}) {
    fmt::format_to(end(), "ingot_{}{}", name_, suffix);
    char before = '{';
    for (const auto& [label, text] : labels) {
      fmt::format_to(end(), "{}{}=\"{}\"", before, label, escaped(text));
      before = ',';
    }
    fmt::format_to(end(), "{} {}\n", before == ',' ? "}" : "", value);
  }
  template <typename Value>
  void counter(std::string_view name, std::string_view help, const Value& value) {
    family(name, "counter", help);
    sample({}, value);
  }
  template <typename Value>
  void gauge(std::string_view name, std::string_view help, const Value& value) {
    family(name, "gauge", help);
    sample({}, value);
  }

 private:
  std::back_insert_iterator<std::string> end() { return std::back_inserter(out_); }
  static std::string escaped(std::string_view text) {
    std::string made;
    for (const char c : text) {
      if (c == '\n') {
        made += "\\n";
        continue;
      }
      if (c == '\\' || c == '"') made.push_back('\\');
      made.push_back(c);
    }
    return made;
  }

  std::string& out_;
  std::string_view name_;
};

double in_seconds(uint64_t micros) {
  return static_cast<double>(micros) * kMicro;
}

void write_server(const InfoSource& source, Page& page) {
  const data::Services& data = source.services.data;
  page.family("info", "gauge", "What runs here.");
  page.sample({{"version", INGOT_VERSION},
               {"engine", data.store.engine().name()},
               {"engine_version", data.store.engine().version()},
               {"run_id", source.services.server.run_id()}},
              1);
  page.gauge("start_time_seconds", "When the server started, Unix time.",
             data.stats.start_ms / 1000);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  page.family("cpu_seconds_total", "counter", "Processor time of the process.");
  const auto of_timeval = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicro;
  };
  page.sample({{"mode", "user"}}, of_timeval(usage.ru_utime));
  page.sample({{"mode", "system"}}, of_timeval(usage.ru_stime));
}

void write_clients(const InfoSource& source, Page& page) {
  const metrics::Stats& stats = source.services.data.stats;
  page.gauge("connected_clients", "Connections.", source.services.clients.size());
  page.gauge("blocked_clients",
             "Clients that wait in a blocking command, or for the end of CLIENT PAUSE.",
             source.writer.figures().blocked_clients);
  page.gauge("max_clients", "maxclients.", source.settings.maxclients);
  page.counter("connections_total", "Connections accepted.", stats.connections_received.load());
  page.counter("connections_rejected_total", "Connections refused.",
               stats.connections_rejected.load());
  page.counter("output_limit_disconnections_total", "Clients cut for not reading their replies.",
               source.net.output_limit_disconnections());
  page.counter("net_input_bytes_total", "Bytes received.", source.net.bytes_in());
  page.counter("net_output_bytes_total", "Bytes sent.", source.net.bytes_out());
  page.gauge("client_input_bytes", "Memory of commands not yet answered.",
             source.net.query_bytes_total());
  page.gauge("client_output_bytes", "Memory of replies not yet sent.",
             source.net.output_bytes_total());
}

void write_memory(const InfoSource& source, Page& page) {
  const MemoryUsage usage = memory_usage();
  page.gauge("memory_used_bytes", "Memory that is allocated.", usage.used);
  page.gauge("memory_resident_bytes", "Resident set.", usage.resident);
  page.gauge("memory_limit_bytes", "maxmemory, or what was chosen for 0.",
             source.services.server.memory_limit_bytes());
}

// Calls `each` with the name and the statistics of every command that was sent.
template <typename Each>
void each_command(const InfoSource& source, const Each& each) {
  const auto look_at = [&](const contract::CommandRow* parent, const contract::CommandRow& row) {
    const metrics::CommandStats* stats = source.services.data.stats.find(row);
    if (stats != nullptr) each(contract::full_name(parent, row), *stats);
  };
  for (const contract::CommandRow* row : source.services.table.rows()) {
    look_at(nullptr, *row);
    for (const contract::CommandRow& subcommand : row->subcommands) look_at(row, subcommand);
  }
}

void write_latencies(const InfoSource& source, Page& page) {
  struct Bound {
    uint64_t nanos;
    std::string_view seconds;
  };
  constexpr auto kBounds = std::to_array<Bound>({{10'000, "0.00001"},
                                                 {30'000, "0.00003"},
                                                 {100'000, "0.0001"},
                                                 {300'000, "0.0003"},
                                                 {1'000'000, "0.001"},
                                                 {3'000'000, "0.003"},
                                                 {10'000'000, "0.01"},
                                                 {30'000'000, "0.03"},
                                                 {100'000'000, "0.1"},
                                                 {300'000'000, "0.3"}});
  page.family("command_duration_seconds", "histogram",
              "Work on commands, the wait for the disk included.");
  each_command(source, [&](const std::string& name, const metrics::CommandStats& stats) {
    const auto* latencies = stats.latencies();
    if (latencies == nullptr) return;
    for (const Bound& bound : kBounds) {
      page.sample({{"command", name}, {"le", bound.seconds}}, latencies->count_up_to(bound.nanos),
                  "_bucket");
    }
    const uint64_t all = latencies->count();
    page.sample({{"command", name}, {"le", "+Inf"}}, all, "_bucket");
    page.sample({{"command", name}}, static_cast<double>(stats.nanos.load()) * 1e-9, "_sum");
    page.sample({{"command", name}}, all, "_count");
  });
}

void write_commands(const InfoSource& source, Page& page) {
  const metrics::Stats& stats = source.services.data.stats;
  page.family("commands_total", "counter", "Commands that ran.");
  each_command(source, [&](const std::string& name, const metrics::CommandStats& command) {
    page.sample({{"command", name}}, command.calls.load());
  });
  page.family("command_failures_total", "counter", "Commands that answered an error.");
  each_command(source, [&](const std::string& name, const metrics::CommandStats& command) {
    page.sample({{"command", name}}, command.failed.load());
  });
  page.family("command_rejections_total", "counter", "Commands that were refused.");
  each_command(source, [&](const std::string& name, const metrics::CommandStats& command) {
    page.sample({{"command", name}}, command.rejected.load());
  });
  write_latencies(source, page);
  page.family("errors_total", "counter", "Error replies by their first word.");
  for (const auto& [name, count] : stats.errors()) page.sample({{"error", name}}, count);
  page.gauge("slowlog_entries", "What SLOWLOG LEN tells.", stats.slow_log.size());
}

void write_keys(const InfoSource& source, Page& page) {
  const metrics::Stats& stats = source.services.data.stats;
  const auto each_database = [&](const auto& value_of) {
    for (size_t db = 0; db < source.keys.databases().size(); ++db) {
      const storage::KeyCounts counts = source.keys.counts(static_cast<int>(db));
      if (counts.keys != 0) page.sample({{"db", fmt::format("{}", db)}}, value_of(counts));
    }
  };
  page.family("keys", "gauge", "Keys; an estimate while keys_settled is 0.");
  each_database([](const storage::KeyCounts& counts) { return counts.keys; });
  page.family("keys_expiring", "gauge", "Keys that expire.");
  each_database([](const storage::KeyCounts& counts) { return counts.expires; });
  page.counter("keyspace_hits_total", "Reads of keys that were there.", stats.keyspace_hits.load());
  page.counter("keyspace_misses_total", "Reads of keys that were not.",
               stats.keyspace_misses.load());
  page.counter("expired_keys_total", "Keys removed because their time had come.",
               stats.expired_keys.load());
  page.counter("unread_overwrites_total", "Keys overwritten without a look at what they held.",
               stats.unread_overwrites.load());
}

void write_threads(const InfoSource& source, Page& page) {
  const metrics::Stats& stats = source.services.data.stats;
  const data::ReaderPool& readers = source.services.data.readers;
  const exec::Writer::Figures writer = source.writer.figures();
  page.counter("probes_total", "Reads tried in memory on an I/O thread.", stats.probes.load());
  page.counter("probe_hits_total", "Reads answered there.", stats.probe_hits.load());
  page.gauge("reader_threads", "Threads of the reader pool.", readers.threads());
  page.gauge("reader_queue_depth", "Reads that wait for a reader thread.", readers.queue_depth());
  page.counter("reader_tasks_total", "Tasks of the reader pool.", readers.tasks_run());
  page.counter("reader_busy_seconds_total",
               "Time that reader threads worked or waited for the disk.",
               in_seconds(readers.busy_micros()));
  page.gauge("writer_queue_depth", "Jobs that wait for the writer.", writer.queue_depth);
  page.counter("writer_busy_seconds_total", "Time that the writer worked.",
               in_seconds(stats.writer_busy_micros.load()));
  page.counter("writer_commit_seconds_total", "Time of that in commits.",
               in_seconds(stats.writer_commit_micros.load()));
  page.family("group_units", "summary", "Commands and transactions in a commit.");
  page.sample({}, stats.group_units.load(), "_sum");
  page.sample({}, stats.groups.load(), "_count");
  page.counter("rollbacks_total", "Writes run again because the disk had what they need.",
               stats.rollbacks.load());
  page.counter("writer_disk_reads_total", "Writes for which the writer itself went to the disk.",
               stats.writer_disk_reads.load());
  page.counter("pool_built_units_total", "Writes whose value was made beside the writer.",
               stats.pool_built_units.load());
  page.counter("sync_waits_total", "Commits held back because an fsync was late.",
               stats.sync_waits.load());
  page.gauge("unsynced_seconds", "Age of the oldest write that is not on stable storage.",
             static_cast<double>(writer.unsynced_ms) / 1000);
  page.gauge("unsettled_keys", "Keys overwritten unread whose old record is being read.",
             writer.unsettled_keys);
}

void write_engine(const InfoSource& source, Page& page) {
  const data::Services& data = source.services.data;
  const storage::Engine& engine = data.store.engine();
  const storage::EngineStats stats = engine.stats();
  page.gauge("engine_healthy", "1: writes are taken without reserve.",
             engine.health() == storage::Health::kHealthy ? 1 : 0);
  page.gauge("engine_disk_bytes", "Live files.", stats.disk_bytes);
  page.gauge("engine_memory_bytes", "Memory of the engine.", stats.memory_bytes);
  page.gauge("engine_memtable_bytes", "Memory of memtables.", stats.memtable_bytes);
  page.gauge("engine_cache_bytes", "Block cache in use.", stats.cache_bytes);
  page.gauge("engine_cache_capacity_bytes", "Block cache at most.", stats.cache_capacity);
  page.counter("engine_cache_hits_total", "Blocks found in the block cache.", stats.cache_hits);
  page.counter("engine_cache_misses_total", "Blocks not found there.", stats.cache_misses);
  page.gauge("record_cache_bytes", "Cache of hot records.", data.store.cache().bytes());
  page.gauge("record_cache_capacity_bytes", "Cache of hot records at most, as of now.",
             data.store.cache().capacity());
  page.counter("record_cache_hits_total", "Records found there.", data.store.cache().hits());
  page.gauge("collection_cache_bytes", "Images of small collections.", data.store.images().bytes());
  page.counter("collection_cache_hits_total", "Reads of such images.", data.store.images().hits());
  page.gauge("order_counts_bytes", "Counts of large sorted sets that are asked for ranks.",
             data.store.order_counts().bytes());
  page.counter("engine_read_bytes_total", "Bytes read from tables.", stats.bytes_read);
  page.counter("engine_written_bytes_total", "Bytes written to logs and tables.",
               stats.bytes_written);
  page.gauge("engine_pending_compaction_bytes", "What compaction has yet to read.",
             stats.pending_compaction_bytes);
  page.gauge("engine_running_compactions", "Compactions that run.", stats.running_compactions);
  page.counter("engine_stall_seconds_total", "Time that the engine held writes back.",
               in_seconds(stats.stall_micros));
  page.gauge("checkpoints_disk_bytes", "What only checkpoints have any more, on the disk.",
             source.checkpoints.bytes);
  page.gauge("engine_writes_stopped", "1: the engine holds writes back now.",
             stats.writes_stopped ? 1 : 0);
  page.gauge("garbage_pending", "Dropped collections and databases not yet reclaimed.",
             data.collector.pending());
  page.counter("garbage_reclaimed_total", "Those that are.", data.collector.reclaimed());
  const auto levels = engine.levels();
  page.family("engine_level_files", "gauge", "Tables of a level.");
  for (size_t level = 0; level < levels.size(); ++level) {
    page.sample({{"level", fmt::format("{}", level)}}, levels[level].files);
  }
  page.family("engine_level_bytes", "gauge", "Bytes of a level's tables.");
  for (size_t level = 0; level < levels.size(); ++level) {
    page.sample({{"level", fmt::format("{}", level)}}, levels[level].bytes);
  }
}

}  // namespace

std::string metrics_page(const InfoSource& source) {
  std::string text;
  Page page(text);
  write_server(source, page);
  write_clients(source, page);
  write_memory(source, page);
  write_commands(source, page);
  write_keys(source, page);
  write_threads(source, page);
  write_engine(source, page);
  return text;
}

}  // namespace ingot::server

// The sections of INFO that Redis does not have: the engine, and how the threads divide the work.
#include <algorithm>

#include "src/data/collector.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/exec/writer.h"
#include "src/metrics/stats.h"
#include "src/server/info.h"
#include "src/server/info_sections.h"

namespace ingot::server {
namespace {

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void write_engine(const InfoSource& source, InfoFields& out) {
  const storage::Engine& engine = source.services.data.store.engine();
  const storage::EngineStats stats = engine.stats();
  const uint64_t keys_max =
      keys_whose_filters_fit(stats.cache_capacity, source.settings.bloom_bits);
  out.add("engine", engine.name());
  out.add("engine_version", engine.version());
  out.add_bytes("engine_disk_bytes", stats.disk_bytes);
  out.add("checkpoints", source.checkpoints.count);
  out.add_bytes("checkpoints_disk_bytes", source.checkpoints.bytes);
  out.add_bytes("engine_memory_bytes", stats.memory_bytes);
  out.add("engine_cache_bytes", stats.cache_bytes);
  out.add("engine_cache_capacity", stats.cache_capacity);
  out.add("engine_cache_hits", stats.cache_hits);
  out.add("engine_cache_misses", stats.cache_misses);
  out.add_real("engine_cache_hit_rate",
               share(stats.cache_hits, stats.cache_hits + stats.cache_misses), 4);
  out.add("record_cache_bytes", source.services.data.store.cache().bytes());
  out.add("record_cache_capacity", source.services.data.store.cache().capacity());
  out.add("record_cache_hits", source.services.data.store.cache().hits());
  out.add("collection_cache_bytes", source.services.data.store.images().bytes());
  out.add("collection_cache_hits", source.services.data.store.images().hits());
  out.add("order_counts_bytes", source.services.data.store.order_counts().bytes());
  out.add("engine_memtable_bytes", stats.memtable_bytes);
  out.add("engine_bytes_read", stats.bytes_read);
  out.add("engine_bytes_written", stats.bytes_written);
  out.add("engine_pending_compaction_bytes", stats.pending_compaction_bytes);
  out.add("engine_running_compactions", stats.running_compactions);
  out.add("engine_stall_micros", stats.stall_micros);
  out.add("engine_writes_stopped", stats.writes_stopped);
  out.add("engine_estimated_keys", stats.estimated_keys);
  out.add("engine_keys_whose_filters_fit", keys_max);
  out.add("garbage_pending", source.services.data.collector.pending());
  out.add("garbage_reclaimed", source.services.data.collector.reclaimed());
  out.add("garbage_rewritten_bytes", stats.reclaim_rewritten);
  out.add("garbage_freed_bytes", stats.reclaim_freed);
  out.add("engine_filters_exceed_cache", keys_max > 0 && stats.estimated_keys > keys_max);
}

bool are_counts_settled(const InfoSource& source) {
  for (size_t db = 0; db < source.keys.databases().size(); ++db) {
    if (!source.keys.counts(static_cast<int>(db)).settled) return false;
  }
  return true;
}

void write_threads(const InfoSource& source, InfoFields& out) {
  const metrics::Stats& stats = source.services.data.stats;
  const data::ReaderPool& readers = source.services.data.readers;
  const int threads = readers.threads();
  const double readers_busy_micros = stats.sampler.per_second(metrics::Meter::kReaderBusyMicros);
  const uint64_t probes = stats.probes.load();
  const uint64_t groups = stats.groups.load();
  out.add("io_threads", source.settings.io_threads);
  out.add("reader_threads", threads);
  out.add("read_io", readers.has_ring() ? "uring" : "threads");
  out.add("reader_queue_depth", readers.queue_depth());
  out.add("reader_tasks", readers.tasks_run());
  out.add_real("reader_busy_share",
               std::min(1.0, readers_busy_micros / 1e6 / std::max(1, threads)));
  const exec::Writer::Figures writer = source.writer.figures();
  out.add("writer_queue_depth", writer.queue_depth);
  out.add_real("writer_busy_share",
               std::min(1.0, stats.sampler.per_second(metrics::Meter::kWriterBusyMicros) / 1e6));
  out.add("writer_busy_micros", stats.writer_busy_micros.load());
  out.add("writer_commit_micros", stats.writer_commit_micros.load());
  out.add("probes", probes);
  out.add("probe_hits", stats.probe_hits.load());
  out.add_real("probe_hit_rate", share(stats.probe_hits.load(), probes), 4);
  out.add("groups", groups);
  out.add_real("group_units_mean", share(stats.group_units.load(), groups));
  out.add("group_units_max", stats.group_units_max.load());
  out.add("rollbacks", stats.rollbacks.load());
  out.add("writer_disk_reads", stats.writer_disk_reads.load());
  out.add("prepared_units", stats.pool_built_units.load());
  out.add("sync_waits", stats.sync_waits.load());
  out.add("unread_overwrites", stats.unread_overwrites.load());
  out.add("unsettled_keys", writer.unsettled_keys);
  out.add("key_counts_settled", are_counts_settled(source));
}

constexpr InfoSection kSections[] = {
    {"engine", "Engine", true, write_engine},
    {"threads", "Threads", true, write_threads},
};

}  // namespace

std::span<const InfoSection> own_info_sections() {
  return kSections;
}

}  // namespace ingot::server

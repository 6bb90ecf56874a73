// Counting runs that were kept, and refusals.
#include "src/exec/accounting.h"

#include "src/metrics/stats.h"

namespace ingot::exec {

void Accounting::kept(const contract::ReplySink& reply, const types::KeyReader* keys) {
  auto took = std::chrono::steady_clock::now() - start_;
  metrics::Stats& stats = services_.data.stats;
  metrics::CommandStats& counted = stats.of(row_);
  metrics::add(counted.calls);
  metrics::add(
      counted.micros,
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
  metrics::add(stats.commands);
  if (reply.erred()) {
    metrics::add(counted.failed);
    stats.count_error(reply.last_error());
  }
  if (keys != nullptr && (row_.flags & contract::flag::kReadonly) != 0) {
    if (keys->hits != 0) metrics::add(stats.keyspace_hits, keys->hits);
    if (keys->misses != 0) metrics::add(stats.keyspace_misses, keys->misses);
    for (const types::KeyReader::Missed& missed : keys->missed) {
      const types::Event event{
          .kind = types::notify::kKeyMiss, .name = "keymiss", .db = missed.db, .key = missed.key};
      services_.events.tell({&event, 1});
    }
  }
}

void count_rejected(Services& services, const contract::CommandRow* row, std::string_view error) {
  if (row != nullptr) metrics::add(services.data.stats.of(contract::listed_row(*row)).rejected);
  services.data.stats.count_error(error);
}

}  // namespace ingot::exec

// Statistics of commands; see accounting.h.
#include "src/exec/accounting.h"

#include "src/server/stats.h"

namespace ingot::exec {

void Accounting::kept(const command::ReplySink& reply, const types::KeyReader* keys) {
  auto took = std::chrono::steady_clock::now() - start_;
  server::Stats& stats = services_.stats;
  server::CommandStats& counted = stats.of(row_);
  server::add(counted.calls);
  server::add(counted.micros,
              static_cast<uint64_t>(
                  std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
  server::add(stats.commands);
  if (reply.erred()) {
    server::add(counted.failed);
    stats.count_error(reply.last_error());
  }
  if (keys != nullptr && (row_.flags & command::flag::kReadonly) != 0) {
    if (keys->hits != 0) server::add(stats.keyspace_hits, keys->hits);
    if (keys->misses != 0) server::add(stats.keyspace_misses, keys->misses);
    for (const types::KeyReader::Missed& missed : keys->missed) {
      const types::Event event{.kind = types::notify::kKeyMiss,
                               .name = "keymiss",
                               .db = missed.db,
                               .key = missed.key};
      services_.on_events({&event, 1});
    }
  }
}

void count_rejected(Services& services, const command::CommandRow* row, std::string_view error) {
  if (row != nullptr) server::add(services.stats.of(command::listed_row(*row)).rejected);
  services.stats.count_error(error);
}

}  // namespace ingot::exec

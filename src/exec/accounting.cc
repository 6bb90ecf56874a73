// Statistics of commands; see accounting.h.
#include "src/exec/accounting.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include "src/server/stats.h"

namespace ingot::exec {

namespace {

// Stats::of takes a lock; each thread asks it once for each command.
server::CommandStats& stats_of(server::Stats& stats, const command::CommandRow& row) {
  using Known = std::pair<server::Stats*, const command::CommandRow*>;
  thread_local boost::unordered_flat_map<Known, server::CommandStats*> known;
  server::CommandStats*& found = known[{&stats, &row}];
  if (found == nullptr) found = &stats.of(row);
  return *found;
}

}  // namespace

void Accounting::kept(const command::ReplySink& reply, const types::KeyReader* keys) {
  auto took = std::chrono::steady_clock::now() - start_;
  server::Stats& stats = services_.stats;
  server::CommandStats& counted = stats_of(stats, row_);
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
  }
}

void count_rejected(Services& services, const command::CommandRow* row, std::string_view error) {
  if (row != nullptr) server::add(stats_of(services.stats, *row).rejected);
  services.stats.count_error(error);
}

}  // namespace ingot::exec

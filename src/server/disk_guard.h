// Keeps the disk from running full: decides which writes are to be refused by `max-disk` and
// `min-free-disk`, has the space of what is deleted given back while they are, has replicas cut
// before that whose bytes take it, and finds out when a full disk has healed. One thread calls it,
// every kPeriodMs: a fast disk fills by a hundred megabytes in a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/contract/replicas.h"
#include "src/data/collector.h"
#include "src/exec/writer.h"
#include "src/settings/settings.h"
#include "storage/engine.h"

namespace ingot::server {

struct DiskFigures {
  uint64_t used_bytes = 0;      // by the engine's live files
  uint64_t free_bytes = 0;      // of the filesystem, for us
  uint64_t total_bytes = 0;     // the filesystem's
  uint64_t headroom_bytes = 0;  // EngineStats
  bool lacks_room = false;      // EngineStats
};

// Why writes that may need space are refused; nothing: they are not. When the engine's headroom
// `was_short`, it must be there twice, or with an eighth of the disk: work that gives space back
// takes some first, and growth that opens and closes helps nobody.
std::optional<std::string> growing_refusal(const settings::Settings& settings,
                                           const DiskFigures& figures, bool was_short);

// What may be written until the free space is looked at again: its log, its table and the
// compaction of that, with some more, leave the headroom.
uint64_t growth_allowed(const DiskFigures& figures);

class DiskGuard {
 public:
  static constexpr int kPeriodMs = 100;

  DiskGuard(storage::Engine& engine, data::Collector& collector, exec::Writer& writer,
            contract::Replicas& replicas)
      : engine_(engine), collector_(collector), writer_(writer), replicas_(replicas) {}

  void tick(const settings::Settings& settings);

 private:
  storage::Engine& engine_;
  data::Collector& collector_;
  exec::Writer& writer_;
  contract::Replicas& replicas_;
  uint64_t ticks_ = 0;
  uint64_t make_room_until_ = 0;  // a tick
  storage::EngineStats stats_;    // of the last second, or of now when space is tight
  std::string refusing_;
};

}  // namespace ingot::server

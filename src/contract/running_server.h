// What commands may ask of the running server as a whole: figures, a checkpoint, an end. Any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/types/key_cursor.h"
#include "src/types/keyspace.h"
#include "storage/status.h"

// Of a floor above.
namespace ingot::metrics {
class Stats;
}

namespace ingot::contract {

class RunningServer {
 public:
  virtual ~RunningServer() = default;

  // Begins an orderly stop (flush, exit 0) and returns; the connections are closed by it.
  virtual void request_shutdown() = 0;
  // SAVE: a checkpoint beside the data, replacing the last one. Blocks. On an engine without
  // checkpoints it makes everything durable instead.
  virtual storage::Status save() = 0;
  // BGSAVE: false when one is running already.
  virtual bool save_in_background() = 0;
  virtual bool saving() const = 0;
  virtual int64_t last_save_s() const = 0;  // Unix seconds of the last one that succeeded, or start
  virtual bool last_save_ok() const = 0;
  virtual int64_t last_save_duration_s() const = 0;  // of BGSAVE; -1: none yet
  // DEBUG RELOAD: moves what is in memory into tables. Blocks.
  virtual storage::Status flush_engine() = 0;

  // INFO's text; `keys` counts keys, and may read the disk for that.
  virtual std::string info(types::KeyReader& keys, std::span<const std::string_view> sections) = 0;
  virtual metrics::Stats& stats() = 0;  // for SLOWLOG and LATENCY
  virtual void reset_statistics() = 0;  // CONFIG RESETSTAT

  // Forgets what the client watches, after every write that was sent before.
  virtual void unwatch(uint64_t client_id) = 0;
  virtual void set_active_expire(bool active) = 0;  // DEBUG SET-ACTIVE-EXPIRE
  virtual types::KeyCursors& cursors() = 0;         // of SCAN

  virtual int64_t now_ms() const = 0;             // Unix
  virtual const std::string& run_id() const = 0;  // 40 hex digits
  virtual const std::string& executable() const = 0;
  virtual const std::string& config_file() const = 0;
  virtual uint64_t memory_limit_bytes() const = 0;  // maxmemory, or what was chosen for 0
};

}  // namespace ingot::contract

// What commands may ask of the process: to stop, to save a checkpoint. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "storage/status.h"

namespace ingot::server {

class Lifecycle {
 public:
  virtual ~Lifecycle() = default;

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

  virtual const std::string& run_id() const = 0;  // 40 hex digits
  virtual const std::string& executable() const = 0;
  virtual const std::string& config_file() const = 0;
  virtual uint64_t memory_limit_bytes() const = 0;  // maxmemory, or what was chosen for 0
};

}  // namespace ingot::server

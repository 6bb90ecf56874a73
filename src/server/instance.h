// One running server: builds every part from the configuration, in the order of their dependencies,
// and takes them down in the reverse order. Several may live in one process (tests do that).
//
// Threads: open(), run-time calls of Lifecycle by any thread; close() by the one that opened.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "net/server.h"
#include "src/command/table.h"
#include "src/exec/services.h"
#include "src/exec/store.h"
#include "src/server/client_registry.h"
#include "src/server/config.h"
#include "src/server/lifecycle.h"
#include "src/server/memory_limit.h"
#include "src/server/stats.h"

namespace ingot::exec {
class Collector;
class ReaderPool;
class Writer;
}  // namespace ingot::exec
namespace ingot::types {
class KeyCursors;
}

namespace ingot::server {

class DiskGuard;
class Saver;
class Ticker;

class Instance : public Lifecycle {
 public:
  explicit Instance(Config& config);
  ~Instance() override;  // close()

  // Opens the data and the sockets. A sentence on failure.
  [[nodiscard]] std::optional<std::string> open();
  // Until request_shutdown().
  void wait();
  // Stops accepting, answers what is queued, flushes. Idempotent.
  void close();

  void request_shutdown() override;
  storage::Status save() override;
  bool save_in_background() override;
  bool saving() const override;
  int64_t last_save_s() const override;
  bool last_save_ok() const override;
  int64_t last_save_duration_s() const override;
  const std::string& run_id() const override { return run_id_; }
  const std::string& executable() const override { return executable_; }
  const std::string& config_file() const override { return config_.file(); }
  uint64_t memory_limit_bytes() const override { return memory_limit_.load(); }

 private:
  std::optional<std::string> open_data(const Settings& settings);
  void build_services(const Settings& settings);
  net::Welcome welcome(net::Connection& connection, bool peer_is_local);
  std::optional<Refusal> apply(const Settings& before, const Settings& after);
  void apply_limits(const Settings& settings);
  void tick();

  Config& config_;
  std::string run_id_;
  std::string executable_;
  std::atomic<uint64_t> memory_limit_{0};

  // In the order of construction; taken down backwards.
  Stats stats_;
  ClientRegistry clients_;
  std::unique_ptr<command::Table> table_;
  std::unique_ptr<exec::Store> store_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<types::KeyCursors> cursors_;
  std::unique_ptr<exec::Collector> collector_;
  std::unique_ptr<exec::ReaderPool> readers_;
  std::unique_ptr<exec::Services> services_;
  std::unique_ptr<exec::Writer> writer_;
  std::unique_ptr<net::Server> net_;
  std::unique_ptr<DiskGuard> disk_guard_;
  std::unique_ptr<Ticker> sampler_;
  std::unique_ptr<Ticker> ticker_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool shutdown_requested_ = false;  // by mutex_
  bool closed_ = false;
};

}  // namespace ingot::server

// One running server: builds every part from the configuration, in the order of their dependencies,
// and takes them down in the reverse order. Several may live in one process (tests do that).
//
// Threads: open(), RunningServer by any thread; close() by the one that opened.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "net/http_server.h"
#include "net/server.h"
#include "src/access/users.h"
#include "src/contract/channels.h"
#include "src/contract/client_registry.h"
#include "src/contract/replicas.h"
#include "src/contract/running_server.h"
#include "src/contract/table.h"
#include "src/contract/tracking.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/following.h"
#include "src/exec/services.h"
#include "src/metrics/stats.h"
#include "src/script/scripts.h"
#include "src/server/client_eviction.h"
#include "src/server/departure.h"
#include "src/server/memory_limit.h"
#include "src/server/memory_usage.h"
#include "src/server/oom_score.h"
#include "src/server/saver.h"
#include "src/settings/config.h"

namespace ingot::data {
class ChangeStream;
class Collector;
class ReaderPool;
}  // namespace ingot::data
namespace ingot::exec {
class Writer;
}
namespace ingot::replication {
class Master;
class Failover;
class LinkKeeper;
}  // namespace ingot::replication
namespace ingot::types {
class KeyCursors;
}

namespace ingot::server {
class Compactor;
class DiskGuard;
class ReaderTuner;
class TtlSampler;
class Ticker;
}  // namespace ingot::server

namespace ingot {

class Instance : public contract::RunningServer {
 public:
  explicit Instance(settings::Config& config);
  ~Instance() override;  // close()

  // Opens the data and the sockets, and loads what Redis has left in an empty directory: that takes
  // its time, clients hear meanwhile that it goes on, and request_shutdown() ends it. A sentence on
  // failure. `before_clients` is called when all is there that may refuse to be, before the first
  // client is answered.
  [[nodiscard]] std::optional<std::string> open(const std::function<void()>& before_clients = {});
  // Until it is to stop, and replicas have had their time.
  void wait();
  // Stops accepting, answers what is queued, flushes. Idempotent.
  void close();

  std::unique_ptr<net::BodySource> request_shutdown(bool now) override;
  bool call_off_shutdown() override;
  std::optional<int64_t> shutdown_left_ms() const override;
  bool insist_on_shutdown() { return departure_.insist(); }  // false: none is under way
  bool shutdown_requested() const { return departure_.is_asked_for(); }
  storage::Status save() override;
  storage::Status save_in_background() override;
  bool saving() const override;
  int64_t last_save_s() const override;
  bool last_save_ok() const override;
  int64_t last_save_duration_s() const override;
  int64_t current_save_s() const override;
  storage::Status rewrite_in_background() override;
  contract::BackgroundWork rewriting() const override;
  contract::MemoryFigures memory_figures() override;
  storage::Status flush_engine() override;
  std::string info(types::KeyReader& keys, std::span<const std::string_view> sections) override;
  metrics::Stats& stats() override { return stats_; }
  void reset_statistics() override;
  void unwatch(uint64_t client_id) override;
  void set_active_expire(bool active) override;
  types::KeyCursors& cursors() override { return *cursors_; }
  std::unique_ptr<net::BodySource> follow(contract::Client& client, contract::FollowRequest request,
                                          std::string* error) override;
  contract::Replicas& replicas() override { return replicas_; }
  bool follow_master(std::string host, int port) override;
  void follow_nobody() override;
  std::string fail_over(contract::FailoverRequest request) override;
  bool abort_failover() override;
  std::string_view failover_state() const override;
  std::optional<contract::MasterLink> master_link() const override;
  int64_t stream_offset() const override;
  int64_t now_ms() const override { return store_->now_ms(); }
  const std::string& run_id() const override { return run_id_; }
  std::string replication_id() const override;
  void change_replication_id() override;
  const std::string& executable() const override { return executable_; }
  const std::string& config_file() const override { return config_.file(); }
  uint64_t memory_limit_bytes() const override { return memory_limit_.load(); }

 private:
  static std::string random_id();  // 40 hex digits
  std::optional<std::string> open_data(const settings::Settings& settings);
  std::optional<std::string> open_readers(const settings::Settings& settings);
  void build_services(const settings::Settings& settings);
  net::Welcome welcome(net::Connection& connection, bool peer_is_local);
  std::string make_metrics();
  std::optional<settings::Refusal> apply_tls(const settings::Settings& before,
                                             const settings::Settings& after);
  std::optional<settings::Refusal> apply_network(const settings::Settings& before,
                                                 const settings::Settings& after);
  std::optional<settings::Refusal> apply(const settings::Settings& before,
                                         const settings::Settings& after);
  void apply_limits(const settings::Settings& settings);
  void sample();
  void tick();
  server::CheckpointPlan checkpoint_plan() const;

  settings::Config& config_;
  std::string run_id_;
  std::string executable_;
  uint64_t startup_bytes_ = 0;  // of memory, when all was open
  std::atomic<uint64_t> memory_limit_{0};
  std::atomic<uint64_t> engine_bytes_{0};  // what the engine is to have
  uint64_t engine_has_bytes_ = 0;          // on the ticker's thread
  uint64_t record_bytes_ = 0;              // on the sampler's thread
  server::ExcessReturn excess_;            // on the sampler's thread

  // In the order of construction; taken down backwards.
  metrics::Stats stats_;
  contract::ClientRegistry clients_;
  std::unique_ptr<access::Users> users_;
  contract::Channels channels_;
  contract::Tracking tracking_;
  std::unique_ptr<contract::Table> table_;
  std::unique_ptr<data::Store> store_;
  std::unique_ptr<data::ChangeStream> changes_;
  std::unique_ptr<server::Saver> saver_;
  std::unique_ptr<server::Compactor> compactor_;
  std::unique_ptr<types::KeyCursors> cursors_;
  std::unique_ptr<data::Collector> collector_;
  std::unique_ptr<data::ReaderPool> readers_;
  std::unique_ptr<server::ReaderTuner> tuner_;
  exec::Couriers couriers_{channels_, tracking_, clients_};
  script::Scripts scripts_;
  exec::ClientPause pause_;
  contract::Replicas replicas_;
  exec::Following following_;
  std::unique_ptr<exec::Services> services_;
  std::shared_ptr<server::TtlSampler> ttl_sampler_;
  std::unique_ptr<exec::Writer> writer_;
  std::unique_ptr<replication::Master> master_;
  std::unique_ptr<replication::LinkKeeper> link_keeper_;
  std::unique_ptr<replication::Failover> failover_;
  std::unique_ptr<net::Server> net_;
  std::unique_ptr<server::DiskGuard> disk_guard_;
  server::ClientEviction client_eviction_{clients_, stats_};
  std::unique_ptr<server::Ticker> sampler_;
  std::unique_ptr<server::Ticker> ticker_;
  server::OomScore oom_score_;
  std::unique_ptr<net::HttpServer> metrics_server_;

  server::Departure departure_;
  mutable std::mutex mutex_;
  std::string replication_id_;  // by mutex_
  bool closed_ = false;
};

}  // namespace ingot

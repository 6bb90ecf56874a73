// A whole executor in one process, without a socket: sessions, writer, reader pool and collector
// over an engine of choice, with a clock that the test turns. Each client is used by one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/connection.h"
#include "src/access/users.h"
#include "src/commands/families.h"
#include "src/contract/client_registry.h"
#include "src/contract/replicas.h"
#include "src/contract/running_server.h"
#include "src/contract/table.h"
#include "src/data/change_stream.h"
#include "src/data/collector.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/following.h"
#include "src/exec/services.h"
#include "src/exec/session.h"
#include "src/exec/writer.h"
#include "src/metrics/stats.h"
#include "src/script/scripts.h"
#include "src/settings/config.h"
#include "src/types/key_cursor.h"
#include "storage/engine.h"
#include "tests/storage/temporary_directory.h"

namespace ingot::test {

// An I/O thread without sockets.
class FakeThread : public net::IoThread {
 public:
  FakeThread();
  ~FakeThread() override;
  void post(std::move_only_function<void()> task) override;
  bool is_current() const override { return std::this_thread::get_id() == thread_.get_id(); }
  int index() const override { return 0; }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::move_only_function<void()>> tasks_;  // by mutex_
  bool stopping_ = false;                               // by mutex_
  std::thread thread_;
};

class StubServer : public contract::RunningServer {
 public:
  std::unique_ptr<net::BodySource> request_shutdown(bool) override { return nullptr; }
  bool call_off_shutdown() override { return false; }
  std::optional<int64_t> shutdown_left_ms() const override { return std::nullopt; }
  storage::Status flush_engine() override { return {}; }
  std::string info(types::KeyReader&, std::span<const std::string_view>) override { return {}; }
  metrics::Stats& stats() override { return stats_; }
  void reset_statistics() override {}
  void unwatch(uint64_t client_id) override { writer->unwatch(client_id); }
  void set_active_expire(bool active) override { writer->set_active_expire(active); }
  types::KeyCursors& cursors() override { return cursors_; }
  std::unique_ptr<net::BodySource> follow(contract::Client&, contract::FollowRequest,
                                          std::string*) override {
    return nullptr;
  }
  contract::Replicas& replicas() override { return replicas_; }
  bool follow_master(std::string, int) override { return true; }
  void follow_nobody() override {}
  std::string fail_over(contract::FailoverRequest) override { return {}; }
  bool abort_failover() override { return false; }
  std::string_view failover_state() const override { return "no-failover"; }
  std::optional<contract::MasterLink> master_link() const override { return std::nullopt; }
  int64_t stream_offset() const override { return 0; }
  int64_t now_ms() const override { return 0; }
  storage::Status save() override { return {}; }
  storage::Status save_in_background() override { return {}; }
  bool saving() const override { return false; }
  int64_t last_save_s() const override { return 0; }
  bool last_save_ok() const override { return true; }
  int64_t last_save_duration_s() const override { return -1; }
  int64_t current_save_s() const override { return -1; }
  storage::Status rewrite_in_background() override { return {}; }
  contract::BackgroundWork rewriting() const override { return {}; }
  contract::MemoryFigures memory_figures() override { return {}; }
  std::string replication_id() const override { return text_; }
  void change_replication_id() override {}
  const std::string& run_id() const override { return text_; }
  const std::string& executable() const override { return text_; }
  const std::string& config_file() const override { return text_; }
  uint64_t memory_limit_bytes() const override { return 1 << 30; }

  exec::Writer* writer = nullptr;

 private:
  types::KeyCursors cursors_;
  contract::Replicas replicas_;
  std::string text_;
  metrics::Stats stats_{0};
};

class InProcess {
 public:
  explicit InProcess(std::unique_ptr<storage::Engine> engine, int readers = 2);
  ~InProcess();

  // Nothing changes the engine from now on. Every client has been answered, or is gone.
  void stop();

  std::atomic<int64_t> now_ms{1'700'000'000'000};
  exec::Services& services() { return *services_; }
  exec::Writer& writer() { return *writer_; }

 private:
  friend class InProcessClient;
  settings::Config config_{"test"};
  metrics::Stats stats_{0};
  contract::ClientRegistry clients_;
  StubServer stub_;
  contract::Table table_{commands::all_families()};
  access::Users users_{commands::all_families()};
  contract::Channels channels_;
  contract::Tracking tracking_;
  exec::Couriers couriers_{channels_, tracking_, clients_};
  script::Scripts scripts_;
  exec::ClientPause pause_;
  contract::Replicas replicas_;
  exec::Following following_;
  storage::TemporaryDirectory backlog_;
  std::unique_ptr<data::Store> store_;
  std::unique_ptr<data::ChangeStream> changes_;
  std::unique_ptr<data::Collector> collector_;
  std::unique_ptr<data::ReaderPool> readers_;
  std::unique_ptr<exec::Services> services_;
  std::unique_ptr<exec::Writer> writer_;
  FakeThread thread_;
};

class InProcessClient {
 public:
  explicit InProcessClient(InProcess& server);
  ~InProcessClient();

  // Sends the commands as one pipeline; answers the encoded replies of all, together.
  using Line = std::vector<std::string>;
  std::string pipeline(const std::vector<Line>& lines);
  std::string run(Line line) { return pipeline({std::move(line)}); }
  // The same in two steps.
  void send(const std::vector<Line>& lines);
  std::string receive();
  // Waits until the collector has been through what it looks for when it starts: from then on it
  // writes nothing before it is told of something that was dropped. Flushes database 15.
  void let_collector_start();
  // As the connection tells its session; see net::Handler.
  void end_input() { tell(&net::Handler::on_input_end); }
  void lose() { tell(&net::Handler::on_lost); }
  bool is_closed() const;  // by the session

 private:
  class FakeConnection;
  void tell(void (net::Handler::*what)());
  void on_thread(std::move_only_function<void()> task);  // of the session; returns behind it

  InProcess& server_;
  std::unique_ptr<FakeConnection> connection_;
  std::shared_ptr<exec::Session> session_;
};

}  // namespace ingot::test

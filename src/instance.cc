// Building the parts of a server, applying settings that change live, the tick, taking it down.
#include "src/instance.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "src/access/user_file.h"
#include "src/commands/families.h"
#include "src/data/change_stream.h"
#include "src/data/collector.h"
#include "src/data/reader_pool.h"
#include "src/exec/session.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/metrics/sampler.h"
#include "src/replication/failover.h"
#include "src/replication/link_keeper.h"
#include "src/replication/master.h"
#include "src/script/stored_libraries.h"
#include "src/server/compactor.h"
#include "src/server/crash_log.h"
#include "src/server/disk_guard.h"
#include "src/server/first_load.h"
#include "src/server/info.h"
#include "src/server/memory_usage.h"
#include "src/server/metrics_page.h"
#include "src/server/part_options.h"
#include "src/server/process.h"
#include "src/server/process_title.h"
#include "src/server/reader_tuner.h"
#include "src/server/saver.h"
#include "src/server/ticker.h"
#include "src/server/ttl_sampler.h"
#include "src/types/key_cursor.h"
#include "storage/scratch_copy.h"

namespace ingot {

namespace {

constexpr int kStopGraceMs = 1000;
int64_t system_now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool is_protected(const settings::Settings& settings, const access::Users& users) {
  return settings.protected_mode && users.default_account()->user()->nopass;
}

}  // namespace

Instance::Instance(settings::Config& config)
    : config_(config), run_id_(random_id()), stats_(system_now_ms()), replication_id_(run_id_) {
  std::error_code error;
  executable_ = std::filesystem::read_symlink("/proc/self/exe", error).string();
}

Instance::~Instance() {
  close();
}

std::optional<std::string> Instance::open(const std::function<void()>& before_clients) {
  auto settings = config_.settings();
  auto families = commands::all_families();
  if (auto error = contract::Table::check_renames(families, settings->renamed_commands)) {
    return error;
  }
  table_ = std::make_unique<contract::Table>(families, settings->renamed_commands);
  users_ = std::make_unique<access::Users>(families);
  if (auto error = access::set_up_users(*users_, *settings)) return error;
  server::set_memory_return(settings->jemalloc_bg_thread);
  if (const uint64_t fit = server::clients_that_fit(settings->maxclients); fit == 0) {
    return fmt::format(
        "Your current 'ulimit -n' is not enough for the server to start. Please increase your open "
        "file limit to at least {}. Exiting.",
        settings->maxclients + server::kReservedFiles);
  } else if (fit < settings->maxclients) {
    metrics::log::warning(
        "maxclients has been reduced from {} to {} to compensate for low ulimit. If you need "
        "higher maxclients increase 'ulimit -n' to {}.",
        settings->maxclients, fit, settings->maxclients + server::kReservedFiles);
    config_.set_maxclients(static_cast<unsigned>(fit));
    settings = config_.settings();
  }
  server::FirstLoad first_load(*settings);
  if (auto error = first_load.prepare()) return error;
  if (auto error = open_data(*settings)) return error;
  if (auto error = open_readers(*settings)) return error;
  build_services(*settings);
  apply_limits(*settings);
  (void)oom_score_.apply(*settings);
  if (server::needs_tls(*settings)) {
    if (std::string why = net_->use_tls(server::tls_options(*settings)); !why.empty()) {
      return "Failed to configure TLS: " + why;
    }
  }
  if (auto status = script::load_stored(store_->engine(), scripts_); !status.ok()) {
    return "Can't read the libraries of functions: " + status.message();
  }
  const bool has_port = settings->port != 0 || settings->tls_port != 0;
  if (settings->unixsocket.empty() && (settings->bind.empty() || !has_port)) {
    return "Configured to not listen anywhere, exiting.";
  }
  std::string error = net_->listen(server::listen_options(*settings));
  if (!error.empty()) return error;
  config_.describe_users_by([this] { return access::config_user_lines(*users_); });
  config_.on_change([this](const settings::Settings& before, const settings::Settings& after) {
    return apply(before, after);
  });
  // From the first group on: what expired here would be told in the master's stream. (Where that is
  // off no master has been followed, and files of Redis may be loaded first.)
  following_.writer = following_.asked = changes_->on() && !settings->master.host.empty();
  writer_->start();
  collector_->start();
  sampler_ = std::make_unique<server::Ticker>(
      std::chrono::milliseconds(metrics::Sampler::kPeriodMs), [this] { sample(); });
  ticker_ = std::make_unique<server::Ticker>(
      std::chrono::milliseconds(server::DiskGuard::kPeriodMs), [this] { tick(); });
  metrics_server_ = std::make_unique<net::HttpServer>(net::HttpPage{
      .path = "/metrics",
      .content_type = server::kMetricsContentType,
      .make = [this] { return make_metrics(); },
      .serves_others = [this] { return !is_protected(*config_.settings(), *users_); }});
  if (auto why = metrics_server_->listen(settings->bind, server::metrics_port(*settings));
      !why.empty()) {
    return why;
  }
  startup_bytes_ = server::memory_usage().used;
  services_->loading.start_s = now_ms() / 1000;
  services_->loading.on = first_load.is_wanted();
  // What is loaded must not come to stand over a master's data.
  if (!first_load.is_wanted()) link_keeper_->start();
  if (before_clients) before_clients();
  net_->start();
  if (!first_load.is_wanted()) return std::nullopt;
  auto failure = first_load.run(*services_, *writer_, [this] { return shutdown_requested(); });
  if (!failure) link_keeper_->start();
  services_->loading.on = failure.has_value();
  return failure;
}

std::string Instance::make_metrics() {
  const auto view = store_->view();
  storage::EngineReader data(store_->engine(), view->snapshot(), storage::Tier::kDisk);
  types::KeyReader keys(data, view->databases(), view->created_ms(), nullptr);
  return server::metrics_page({.services = *services_,
                               .writer = *writer_,
                               .net = *net_,
                               .keys = keys,
                               .settings = *config_.settings(),
                               .ttl = *ttl_sampler_,
                               .checkpoints = saver_->space(checkpoint_plan(), *readers_)});
}

std::optional<std::string> Instance::open_data(const settings::Settings& settings) {
  memory_limit_ = server::memory_limit(settings, server::read_machine());
  engine_bytes_ = engine_has_bytes_ = server::share_out(settings, memory_limit_).engine_bytes;
  const char* fault_file = std::getenv("INGOT_FAULT_FILE");  // for tests of failing disks
  storage::EngineOptions options{
      .path = settings::data_path(settings),
      .cache_bytes = engine_bytes_,
      .bloom_bits = settings.bloom_bits,
      .compression = settings.compression,
      .compaction_threads = settings.compaction_threads,
      .compaction_rate = settings.compaction_rate,
      .direct_reads = settings.direct_reads,
      .fault_file = fault_file != nullptr ? fault_file : "",
      .on_background_error =
          [](const storage::Status& status) {
            metrics::log::warning("Storage engine: {}", status.message());
          },
      .on_log = [](const std::string& line) { metrics::log::notice("{}", line); }};
  auto [engine, opened] = storage::open_engine(settings.engine, options);
  if (!opened.ok()) return "Can't open the data in " + options.path + ": " + opened.message();
  storage::remove_scratch_copies(options.path);
  storage::Status status;
  store_ = data::Store::open(std::move(engine), settings.databases, system_now_ms, &status);
  if (store_ == nullptr) return "Can't open the data in " + options.path + ": " + status.message();
  store_->set_cache_capacity(server::share_out(settings, memory_limit_).record_bytes);
  changes_ = data::ChangeStream::open(store_->engine(), settings::backlog_path(settings),
                                      settings.repl_backlog_size,
                                      /*follows=*/!settings.master.host.empty(), &status);
  if (changes_ == nullptr) {
    return "Can't open the data in " + options.path + ": " + status.message();
  }
  saver_ = std::make_unique<server::Saver>(store_->engine(), stats_, system_now_ms() / 1000);
  compactor_ = std::make_unique<server::Compactor>(store_->engine());
  cursors_ = std::make_unique<types::KeyCursors>();
  cursors_->load(store_->engine());
  return std::nullopt;
}

std::optional<std::string> Instance::open_readers(const settings::Settings& settings) {
  std::unique_ptr<storage::ReadRing> ring;
  storage::Status why(storage::Status::Code::kUnsupported, "engine " + settings.engine);
  const bool wanted = settings.read_io != settings::ReadIo::kThreads;
  if (wanted && store_->engine().capabilities().ring) {
    ring = storage::ReadRing::open(data::ReaderPool::kLookupsUnderWay, &why);
  }
  if (wanted && ring == nullptr) {
    if (settings.read_io == settings::ReadIo::kUring) {
      return "Can't have 'read-io uring' here: " + why.message();
    }
    metrics::log::notice("Reading with threads, not with io_uring: {}", why.message());
  }
  const bool is_measured = settings.reader_threads == server::ReaderTuner::kAuto;
  readers_ = std::make_unique<data::ReaderPool>(
      is_measured ? server::ReaderTuner::kUntilMeasured : settings.reader_threads, std::move(ring));
  tuner_ = std::make_unique<server::ReaderTuner>(*readers_, settings::data_path(settings));
  if (is_measured) (void)tuner_->follow(settings.reader_threads);
  return std::nullopt;
}

void Instance::build_services(const settings::Settings& settings) {
  collector_ = std::make_unique<data::Collector>(*store_);
  services_.reset(new exec::Services{.data = {.store = *store_,
                                              .readers = *readers_,
                                              .collector = *collector_,
                                              .changes = *changes_,
                                              .config = config_,
                                              .stats = stats_},
                                     .clients = clients_,
                                     .users = *users_,
                                     .server = *this,
                                     .table = *table_,
                                     .channels = channels_,
                                     .tracking = tracking_,
                                     .couriers = couriers_,
                                     .scripts = scripts_,
                                     .pause = pause_,
                                     .replicas = replicas_,
                                     .following = following_});
  ttl_sampler_ = std::make_shared<server::TtlSampler>(services_->data);
  couriers_.want_events(settings.notify_keyspace_events);
  writer_ = std::make_unique<exec::Writer>(*services_, server::policy_of(settings.appendfsync));
  replicas_.told = replicas_.changed = changes_->offset();
  replicas_.on_ack = [this] { writer_->note_ack(); };
  master_ = std::make_unique<replication::Master>(*services_, *writer_);
  link_keeper_ = std::make_unique<replication::LinkKeeper>(*services_, *writer_);
  failover_ = std::make_unique<replication::Failover>(*services_, *writer_, *link_keeper_);
  net_ = std::make_unique<net::Server>(net::ServerOptions{
      .io_threads = settings.io_threads,
      .welcome = [this](net::Connection& connection,
                        bool peer_is_local) { return welcome(connection, peer_is_local); },
      .on_log = [](const std::string& line) { metrics::log::warning("{}", line); }});
  std::vector<net::IoThread*> threads;
  for (int i = 0; i < net_->io_threads(); ++i) threads.push_back(&net_->thread(i));
  couriers_.serve(threads);
  disk_guard_ =
      std::make_unique<server::DiskGuard>(store_->engine(), *collector_, *writer_, replicas_);
}

net::Welcome Instance::welcome(net::Connection& connection, bool peer_is_local) {
  auto settings = config_.settings();
  metrics::add(stats_.connections_received);
  if (clients_.size() >= settings->maxclients) {
    metrics::add(stats_.connections_rejected);
    return std::string("-ERR max number of clients reached\r\n");
  }
  const access::AccountPtr& account = users_->default_account();
  if (is_protected(*settings, *users_) && !peer_is_local) {
    metrics::add(stats_.connections_rejected);
    return std::string(
        "-DENIED Redis is running in protected mode because protected mode is enabled and no "
        "password is set for the default user. In this mode connections are only accepted from "
        "the loopback interface. If you want to connect from external computers to Redis you "
        "may adopt one of the following solutions: 1) Just disable protected mode sending the "
        "command 'CONFIG SET protected-mode no' from the loopback interface by connecting to "
        "Redis from the same host the server is running, however MAKE SURE Redis is not "
        "publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change"
        " permanent. 2) Alternatively you can just disable the protected mode by editing the "
        "Redis configuration file, and setting the protected mode option to 'no', and then "
        "restarting the server. 3) If you started the server manually just for testing, restart"
        " it with the '--protected-mode no' option. 4) Setup a an authentication password for "
        "the default user. NOTE: You only need to do one of the above things in order for the "
        "server to start accepting connections from the outside.\r\n");
  }
  bool is_unix =
      !settings->unixsocket.empty() && connection.peer_address() == settings->unixsocket + ":0";
  auto client = std::make_shared<contract::Client>(clients_.next_id(), connection.peer_address(),
                                                   connection.local_address(), connection.fd(),
                                                   is_unix, now_ms(), account);
  client->authenticated = !account->needs_password();
  connection.set_authenticated(client->authenticated);
  client->connection = &connection;
  auto session = std::make_shared<exec::Session>(*services_, *writer_, connection, client);
  client->kill = [&killed = *client, weak = std::weak_ptr(session), &thread = connection.thread()] {
    killed.leaving = true;  // already, for whoever hears that it was killed
    thread.post([weak] {
      if (auto alive = weak.lock()) alive->kill();
    });
  };
  clients_.add(client);
  metrics::log::verbose("Accepted {}", client->address);
  return session;
}

void Instance::apply_limits(const settings::Settings& settings) {
  net::Limits& limits = net_->limits();
  limits.proto_max_bulk_bytes = static_cast<uint64_t>(settings.proto_max_bulk_len);
  limits.query_buffer_bytes_max = settings.client_query_buffer_limit;
  const auto apply_output = [](net::Limits::Output& limit, const settings::OutputLimit& setting) {
    limit.hard_bytes = setting.hard_bytes;
    limit.soft_bytes = setting.soft_bytes;
    limit.soft_seconds = static_cast<uint32_t>(setting.soft_seconds);
  };
  apply_output(limits.normal_output, settings.output_limits[settings::kNormalClients]);
  apply_output(limits.subscriber_output, settings.output_limits[settings::kPubsubClients]);
  server::MemoryShares shares = server::share_out(settings, memory_limit_);
  client_eviction_.set_limit(server::clients_limit(settings, memory_limit_));
  limits.output_total_bytes_max = shares.output_bytes;
  limits.query_total_bytes_max = shares.input_bytes;
  limits.command_bytes_max = shares.command_bytes;
  limits.handshake_bytes_max = shares.command_bytes;
  tracking_.keys_max = settings.tracking_table_max_keys;
  tracking_.bytes_max = shares.command_bytes;
  services_->data.bounds.command_bytes = shares.command_bytes;
  services_->data.bounds.transaction_bytes = shares.transaction_bytes;
  services_->data.bounds.changes_bytes = shares.changes_bytes;
  scripts_.set_bounds({.memory_bytes = shares.transaction_bytes,
                       .cache_bytes = shares.command_bytes,
                       .reply_bytes = shares.transaction_bytes,
                       .busy_ms = settings.busy_reply_threshold_ms});
  store_->access().count_uses({.on = settings::counts_uses(settings.maxmemory_policy),
                               .log_factor = static_cast<uint32_t>(settings.lfu_log_factor),
                               .decay_minutes = static_cast<uint32_t>(settings.lfu_decay_time)});
  replicas_.min_to_write = settings.min_replicas_to_write;
  replicas_.write_acks = static_cast<size_t>(settings.write_acks);
  replicas_.write_acks_ms = settings.write_acks_timeout;
  replicas_.max_lag_s = settings.min_replicas_max_lag;
  changes_->set_backlog_limit(settings.repl_backlog_size);
  following_.read_only = settings.replica_read_only;
  following_.serves_stale = settings.replica_serve_stale_data;
  limits.idle_timeout_seconds = static_cast<uint32_t>(settings.timeout);
  limits.tcp_keepalive_seconds = static_cast<uint32_t>(settings.tcp_keepalive);
  stats_.slow_log.configure(settings.slowlog_log_slower_than,
                            static_cast<size_t>(settings.slowlog_max_len));
  stats_.latency.set_threshold_ms(static_cast<uint64_t>(settings.latency_monitor_threshold));
  stats_.measures_latencies = settings.latency_tracking;
}

std::optional<settings::Refusal> Instance::apply_tls(const settings::Settings& before,
                                                     const settings::Settings& after) {
  if (!server::needs_tls(after)) return std::nullopt;
  const bool same = server::needs_tls(before) &&
                    before.volatile_changes == after.volatile_changes &&
                    server::tls_options(before) == server::tls_options(after);
  if (same) return std::nullopt;
  const std::string why = net_->use_tls(server::tls_options(after));
  if (why.empty()) return std::nullopt;
  metrics::log::warning("Failed to configure TLS: {}", why);
  return settings::Refusal{server::changed_tls_setting(before, after),
                           "Unable to update TLS configuration. Check server logs."};
}

std::optional<settings::Refusal> Instance::apply_network(const settings::Settings& before,
                                                         const settings::Settings& after) {
  if (auto refusal = apply_tls(before, after)) return refusal;
  const bool listening = before.bind != after.bind || before.port != after.port ||
                         before.tls_port != after.tls_port ||
                         before.tcp_backlog != after.tcp_backlog;
  if (listening) {
    std::string error = net_->listen(server::listen_options(after));
    if (!error.empty()) {
      metrics::log::warning("{}", error);
      const bool plain = before.port != after.port;
      if (!plain && before.tls_port == after.tls_port) {
        return settings::Refusal{"bind", "Failed to bind to specified addresses."};
      }
      return settings::Refusal{plain ? "port" : "tls-port",
                               "Unable to listen on this port. Check server logs."};
    }
  }
  if (before.metrics_port != after.metrics_port || before.bind != after.bind) {
    if (auto why = metrics_server_->listen(after.bind, server::metrics_port(after)); !why.empty()) {
      metrics::log::warning("{}", why);
      return settings::Refusal{"metrics-port", "Unable to listen on this port. Check server logs."};
    }
  }
  return std::nullopt;
}

std::optional<settings::Refusal> Instance::apply(const settings::Settings& before,
                                                 const settings::Settings& after) {
  if (after.maxclients > before.maxclients) {
    if (const uint64_t fit = server::clients_that_fit(after.maxclients); fit < after.maxclients) {
      return settings::Refusal{"maxclients",
                               fmt::format("The operating system is not able to handle the "
                                           "specified number of clients, try with {}",
                                           fit)};
    }
  }
  if (auto refusal = apply_network(before, after)) {
    (void)apply_network(after, before);  // what was done of it already
    return refusal;
  }
  if (!oom_score_.apply(after)) {
    (void)apply_network(after, before);
    return settings::Refusal{"oom-score-adj",
                             "Failed to apply new oom_score_adj configuration, check server logs."};
  }
  if (before.reader_threads != after.reader_threads && !tuner_->follow(after.reader_threads)) {
    (void)apply_network(after, before);
    (void)oom_score_.apply(before);
    (void)tuner_->follow(before.reader_threads);
    return settings::Refusal{"reader-threads",
                             "The operating system gives no more threads, check server logs."};
  }
  server::show_title(after, config_.file());
  memory_limit_ = server::memory_limit(after, server::read_machine());
  const server::MemoryShares has = server::share_out(after, memory_limit_);
  apply_limits(after);
  if (before.jemalloc_bg_thread != after.jemalloc_bg_thread) {
    server::set_memory_return(after.jemalloc_bg_thread);
  }
  engine_bytes_ = has.engine_bytes;  // the ticker's work: RocksDB writes its OPTIONS file for it
  if (before.compaction_rate != after.compaction_rate) {
    store_->engine().set_compaction_rate(after.compaction_rate);
  }
  if (before.appendfsync != after.appendfsync)
    writer_->set_policy(server::policy_of(after.appendfsync));
  if (before.requirepass != after.requirepass) users_->set_default_password(after.requirepass);
  couriers_.want_events(after.notify_keyspace_events);
  metrics::log::set_level(after.loglevel);
  if (before.crash_log_enabled != after.crash_log_enabled) {
    server::write_crash_log(after.crash_log_enabled, after.logfile);
  }
  return std::nullopt;
}

// Gigabytes may have to be evicted, so CONFIG SET leaves that to this thread.
void Instance::sample() {
  const server::MemoryUsage memory = server::memory_usage();
  server::take_sample(services_->data, *net_, memory);
  excess_.look_at(memory, memory_limit_);
  record_bytes_ =
      server::record_bytes_now(*config_.settings(), memory_limit_,
                               {.allocated_bytes = memory.used,
                                .engine_bytes = store_->engine().memory_bytes(),
                                .record_bytes = store_->cache().bytes() + store_->images().bytes() +
                                                store_->order_counts().bytes(),
                                .record_bytes_max = record_bytes_,
                                .resident_bytes = memory.allocator_resident});
  store_->set_cache_capacity(record_bytes_);
  constexpr uint64_t kNobody = 0;
  if (const auto error = scripts_.busy(kNobody); !error.empty()) writer_->refuse_waiting(error);
  if (const auto waited = scripts_.busy_after(); waited.count() > 0) {
    readers_->give_up_scripts(waited);
  }
}

void Instance::tick() {
  auto settings = config_.settings();
  disk_guard_->tick(*settings);
  if (const uint64_t bytes = engine_bytes_; bytes != engine_has_bytes_) {
    store_->engine().set_cache_bytes(bytes);
    engine_has_bytes_ = bytes;
  }
  (void)oom_score_.apply(*settings);  // it may follow another now, or nobody
  client_eviction_.tick(now_ms());
  failover_->tick();
  master_->tick();
}

void Instance::wait() {
  departure_.wait(*services_, *writer_);
}

void Instance::close() {
  if (std::exchange(closed_, true)) return;
  if (store_) store_->engine().interrupt();  // whoever waits for space would have to be waited for
  sampler_.reset();
  ticker_.reset();
  metrics_server_.reset();
  scripts_.stop();  // nobody can wait for one that does not end
  if (net_) net_->stop(kStopGraceMs);
  if (link_keeper_) link_keeper_->stop();
  if (writer_) writer_->stop();
  if (collector_) collector_->stop();
  compactor_.reset();
  tuner_.reset();
  readers_.reset();
  if (!store_) return;
  if (cursors_) cursors_->save(store_->engine());
  store_->engine().set_compaction_rate(0);  // nobody is left whom the flush would disturb
  if (storage::Status status = store_->engine().flush(); !status.ok()) {
    metrics::log::warning("Flushing at the end failed ({}); the log keeps what was written",
                          status.message());
  }
  if (storage::Status status = store_->engine().sync(); !status.ok()) {
    metrics::log::warning("The last sync failed: {}", status.message());
  }
  saver_.reset();
}

}  // namespace ingot

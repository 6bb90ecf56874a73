// What commands ask of the running server (contract/running_server.h), passed on to its parts.
#include <algorithm>
#include <random>

#include "net/server.h"
#include "src/data/change_stream.h"
#include "src/data/collector.h"
#include "src/data/store.h"
#include "src/exec/services.h"
#include "src/exec/writer.h"
#include "src/instance.h"
#include "src/replication/link_keeper.h"
#include "src/replication/master.h"
#include "src/server/compactor.h"
#include "src/server/info.h"
#include "src/server/memory_usage.h"
#include "src/server/saver.h"
#include "src/server/ttl_sampler.h"
#include "src/settings/config.h"

namespace ingot {

std::string Instance::random_id() {
  std::random_device random;
  std::string text;
  while (text.size() < 40) text.push_back("0123456789abcdef"[random() & 15]);
  return text;
}

std::unique_ptr<net::BodySource> Instance::request_shutdown(bool now) {
  return departure_.ask(now);
}
bool Instance::call_off_shutdown() {
  return departure_.call_off();
}
std::optional<int64_t> Instance::shutdown_left_ms() const {
  return departure_.left_ms();
}
storage::Status Instance::flush_engine() {
  return store_->engine().flush();
}
std::string Instance::info(types::KeyReader& keys, std::span<const std::string_view> sections) {
  return server::info_text({.services = *services_,
                            .writer = *writer_,
                            .net = *net_,
                            .keys = keys,
                            .settings = *config_.settings(),
                            .ttl = *ttl_sampler_,
                            .checkpoints = saver_->space(checkpoint_plan(), *readers_)},
                           sections);
}
void Instance::reset_statistics() {
  stats_.reset({.bytes_in = net_->bytes_in(),
                .bytes_out = net_->bytes_out(),
                .reads = net_->reads(),
                .writes = net_->writes(),
                .reclaimed = collector_->reclaimed()});
  store_->engine().reset_stats();
}
void Instance::unwatch(uint64_t client_id) {
  writer_->unwatch(client_id);
}
void Instance::set_active_expire(bool active) {
  writer_->set_active_expire(active);
}
server::CheckpointPlan Instance::checkpoint_plan() const {
  const auto settings = config_.settings();
  return {.path = settings::checkpoint_path(*settings),
          .keep = static_cast<uint64_t>(settings->backup_keep)};
}
storage::Status Instance::save() {
  return saver_->save(checkpoint_plan());
}
storage::Status Instance::save_in_background() {
  return saver_->save_in_background(checkpoint_plan());
}
bool Instance::saving() const {
  return saver_->saving();
}
int64_t Instance::last_save_s() const {
  return saver_->last_save_s();
}
bool Instance::last_save_ok() const {
  return saver_->last_save_ok();
}
int64_t Instance::last_save_duration_s() const {
  return saver_->last_duration_s();
}
int64_t Instance::current_save_s() const {
  return saver_->current_s();
}
storage::Status Instance::rewrite_in_background() {
  const auto settings = config_.settings();
  return compactor_->start(settings->dir, settings->min_free_disk);
}
contract::BackgroundWork Instance::rewriting() const {
  return compactor_->state();
}

contract::MemoryFigures Instance::memory_figures() {
  const server::MemoryUsage usage = server::memory_usage();
  metrics::raise_to(stats_.memory_peak, usage.used);
  const script::Scripts::Figures scripts = scripts_.figures();
  const storage::EngineStats engine = store_->engine().stats();
  const uint64_t keys_max =
      server::keys_whose_filters_fit(engine.cache_capacity, config_.settings()->bloom_bits);
  return {.used = usage.used,
          .resident = usage.resident,
          .peak = stats_.memory_peak.load(),
          .startup = std::min(startup_bytes_, usage.used),
          .clients = net_->output_bytes_total() + net_->query_bytes_total(),
          .scripts = scripts.script_bytes + scripts.script_lua_bytes,
          .functions = scripts.function_bytes + scripts.function_lua_bytes,
          .allocator_active = usage.allocator_active,
          .allocator_resident = usage.allocator_resident,
          .filters_fit = keys_max == 0 || engine.estimated_keys <= keys_max};
}

std::unique_ptr<net::BodySource> Instance::follow(contract::Client& client,
                                                  contract::FollowRequest request,
                                                  std::string* error) {
  const auto link = link_keeper_->link();
  if (link && link->state != contract::MasterLink::State::kConnected) {
    *error = "NOMASTERLINK Can't SYNC while not connected with my master";
    return nullptr;
  }
  return master_->follow(client, std::move(request));
}

bool Instance::follow_master(std::string host, int port) {
  return link_keeper_->follow({.host = std::move(host), .port = port});
}
void Instance::follow_nobody() {
  link_keeper_->lead();
}
std::string Instance::fail_over(contract::FailoverRequest request) {
  return failover_->begin(std::move(request));
}
bool Instance::abort_failover() {
  return failover_->abort();
}
std::string_view Instance::failover_state() const {
  return failover_->state();
}
std::optional<contract::MasterLink> Instance::master_link() const {
  return link_keeper_->link();
}
int64_t Instance::stream_offset() const {
  return static_cast<int64_t>(changes_->place().offset);
}

std::string Instance::replication_id() const {
  if (changes_->on()) return changes_->place().id;
  std::lock_guard lock(mutex_);
  return replication_id_;
}
void Instance::change_replication_id() {
  writer_->between_groups([this] {
    if (changes_->on()) (void)changes_->rename(data::ChangeStream::new_id());
  });
  std::lock_guard lock(mutex_);
  replication_id_ = random_id();
}

}  // namespace ingot

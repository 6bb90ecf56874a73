// Private runs in the pool: for their blocks, or for what the writer asked for.
#include "src/exec/dry_run.h"

#include "src/contract/args.h"
#include "src/data/reader_pool.h"
#include "src/data/sandbox.h"
#include "src/data/store.h"
#include "src/exec/script_calls.h"

namespace ingot::exec {

using storage::Tier;

namespace {

data::Sandbox sandbox_at(const data::View& view, Services& services) {
  data::Store& store = services.data.store;
  return {store.engine(), view.snapshot(),    view.databases(),
          store.now_ms(), data::Sandbox::kId, &store.order_counts()};
}

void follow_select(contract::Args args, const Services& services, int* db) {
  const auto chosen = contract::parse_integer(args[1]);
  const auto databases = static_cast<int64_t>(services.data.store.initial_state().databases.size());
  if (chosen && *chosen >= 0 && *chosen < databases) *db = static_cast<int>(*chosen);
}

// What it asks the pool for is passed over: only blocks are wanted.
void run_dry(Services& services, const WriteJob& job, size_t index, const Call& call,
             data::Sandbox& sandbox, contract::RespSink& reply) {
  const Unit& unit = job.units[job.next];
  const uint64_t seed = unit.seed + place_in_unit(index);
  DryCalls calls(services,
                 {.client = *job.client, .account = unit.permission.account, .db = call.db}, seed,
                 sandbox);
  Earlier dry = {.result = nullptr, .is_dry = true, .fed = {}, .went_on = unit.went_on};
  if (call.row.runs_script) dry.caller = &calls;
  (void)run_any(services, call, *job.client, dry, sandbox.keys(), reply);
}

}  // namespace

void dry_run(Services& services, const WriteJob& job) {
  const Unit& unit = job.units[job.next];
  const auto view = services.data.store.view();
  data::Sandbox sandbox = sandbox_at(*view, services);
  if (unit.happened_elsewhere()) sandbox.keys().never_expire();
  if (!job.lacks_levels) sandbox.keys().orders().leave_unread();
  contract::EncodedReply dropped;
  contract::RespSink reply(dropped, unit.resp);
  if (contract::is_write(*unit.row)) {
    run_dry(
        services, job, 0,
        {.row = *unit.row, .command = *unit.command, .db = unit.db, .client_id = job.client->id},
        sandbox, reply);
    return;
  }
  int db = unit.db;
  for (const contract::QueuedCommand& queued : unit.transaction) {
    // Session commands act on more than data and read nothing; but SELECT tells where the others
    // do.
    if (contract::is_session(*queued.row)) {
      if (queued.row->name == "select") follow_select(queued.command->args, services, &db);
      continue;
    }
    run_dry(services, job, static_cast<size_t>(&queued - unit.transaction.data()),
            {.row = *queued.row, .command = *queued.command, .db = db, .client_id = job.client->id},
            sandbox, reply);
    dropped.clear();
    if (sandbox.overlay().bytes() > services.data.bounds.changes_bytes) return;
  }
}

PoolOutcome do_pool_work(Services& services, const Unit& unit, const contract::PoolWork& work) {
  const auto view = services.data.store.view();
  // Whatever it reads passes by the cache, which it would only sweep.
  storage::EngineReader data(services.data.store.engine(), view->snapshot(), Tier::kDisk,
                             storage::CacheUse::kPassBy);
  types::KeyReader keys(data, view->databases(), services.data.store.now_ms(), nullptr);
  if (unit.happened_elsewhere()) keys.never_expire();
  PoolOutcome outcome{.result = work(keys), .status = data.error()};
  if (data.failed()) outcome.result = nullptr;
  return outcome;
}

void warm_expiry(Services& services, size_t limit, std::string low_water,
                 std::function<void()> then) {
  services.data.readers.submit(
      [&services, limit, low_water = std::move(low_water), then = std::move(then)] {
        const auto view = services.data.store.view();
        data::Sandbox sandbox = sandbox_at(*view, services);
        (void)sandbox.keys().expire_due(limit, low_water);
        then();
      });
}

}  // namespace ingot::exec

// Private runs in the pool: for their blocks, or for what the writer asked for.
#include "src/exec/dry_run.h"

#include "src/contract/args.h"
#include "src/data/reader_pool.h"
#include "src/data/sandbox.h"
#include "src/data/store.h"
#include "src/exec/handlers.h"

namespace ingot::exec {

using storage::Tier;

namespace {

const Earlier kDry = {.result = nullptr, .is_dry = true, .fed = {}};

data::Sandbox sandbox_at(const data::View& view, Services& services) {
  data::Store& store = services.data.store;
  return {store.engine(), view.snapshot(), view.databases(), store.now_ms()};
}

void follow_select(contract::Args args, const Services& services, int* db) {
  const auto chosen = contract::parse_integer(args[1]);
  const auto databases = static_cast<int64_t>(services.data.store.initial_state().databases.size());
  if (chosen && *chosen >= 0 && *chosen < databases) *db = static_cast<int>(*chosen);
}

}  // namespace

void dry_run(Services& services, const WriteJob& job) {
  const Unit& unit = job.units[job.next];
  const auto view = services.data.store.view();
  data::Sandbox sandbox = sandbox_at(*view, services);
  if (!job.lacks_levels) sandbox.keys().orders().leave_unread();
  contract::EncodedReply dropped;
  contract::RespSink reply(dropped, unit.resp);
  // What it asks the pool for is passed over: only blocks are wanted.
  if (contract::is_write(*unit.row)) {
    (void)run_write(
        services,
        {.row = *unit.row, .command = *unit.command, .db = unit.db, .client_id = job.client->id},
        kDry, sandbox.keys(), reply);
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
    (void)run_any(
        services,
        {.row = *queued.row, .command = *queued.command, .db = db, .client_id = job.client->id},
        *job.client, kDry, sandbox.keys(), reply);
    dropped.clear();
    if (sandbox.overlay().bytes() > services.data.bounds.transaction_bytes) return;
  }
}

PoolOutcome do_pool_work(Services& services, const contract::PoolWork& work) {
  const auto view = services.data.store.view();
  // Whatever it reads passes by the cache, which it would only sweep.
  storage::EngineReader data(services.data.store.engine(), view->snapshot(), Tier::kDisk,
                             storage::CacheUse::kPassBy);
  types::KeyReader keys(data, view->databases(), services.data.store.now_ms(), nullptr);
  PoolOutcome outcome{.result = work(keys), .status = data.error()};
  if (data.failed()) outcome.result = nullptr;
  return outcome;
}

void warm_expiry(Services& services, size_t limit, std::function<void()> then) {
  services.data.readers.submit([&services, limit, then = std::move(then)] {
    const auto view = services.data.store.view();
    data::Sandbox sandbox = sandbox_at(*view, services);
    (void)sandbox.keys().expire_due(limit);
    then();
  });
}

}  // namespace ingot::exec

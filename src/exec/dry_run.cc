// Private runs of units in the pool; see dry_run.h.
#include "src/exec/dry_run.h"

#include "src/command/args.h"
#include "src/exec/handlers.h"
#include "src/exec/reader_pool.h"
#include "src/exec/store.h"

namespace ingot::exec {

using storage::Tier;

namespace {

// Ids that nothing is ever stored under.
class NoIds : public types::CollectionIds {
 public:
  storage::CollectionId next() override { return std::numeric_limits<uint64_t>::max() - 1; }
};

struct Sandbox {
  explicit Sandbox(Services& services)
      : view(services.store.view()),
        overlay(services.store.engine(), view->snapshot(), Tier::kDisk),
        keys(overlay, state, ids, effects, services.store.now_ms(), nullptr, false) {
    state.databases = view->databases();
  }

  std::shared_ptr<const View> view;
  storage::Overlay overlay;
  types::KeyspaceState state;
  NoIds ids;
  types::Effects effects;
  types::KeyWriter keys;
};

void follow_select(command::Args args, const Services& services, int* db) {
  const auto chosen = command::parse_integer(args[1]);
  const auto databases = static_cast<int64_t>(services.store.initial_state().databases.size());
  if (chosen && *chosen >= 0 && *chosen < databases) *db = static_cast<int>(*chosen);
}

}  // namespace

void dry_run(Services& services, const WriteJob& job) {
  const Unit& unit = job.units[job.next];
  Sandbox sandbox(services);
  command::EncodedReply dropped;
  command::RespSink reply(dropped, unit.resp);
  // In place of what was prepared nothing is asked for here: only blocks are wanted.
  if (command::is_write(*unit.row)) {
    (void)run_write(services, *unit.row, *unit.command, unit.db, *job.client, {}, sandbox.keys,
                    reply);
    return;
  }
  int db = unit.db;
  for (const command::QueuedCommand& queued : unit.transaction) {
    // Session commands act on more than data and read nothing; but SELECT tells where the others do.
    if (command::is_session(*queued.row)) {
      if (queued.row->name == "select") follow_select(queued.command->args, services, &db);
      continue;
    }
    (void)run_any(services, queued, &db, *job.client, {}, sandbox.keys, reply);
    dropped.clear();
  }
}

std::shared_ptr<command::Prepared> run_preparation(Services& services,
                                                   const command::Prepare& work) {
  auto view = services.store.view();
  storage::EngineReader data(services.store.engine(), view->snapshot(), Tier::kDisk);
  types::KeyReader keys(data, view->databases(), services.store.now_ms(), nullptr);
  storage::Status error;
  return work(keys, services.store, &error);
}

void warm_expiry(Services& services, size_t limit, std::function<void()> then) {
  services.readers.submit([&services, limit, then = std::move(then)] {
    Sandbox sandbox(services);
    (void)sandbox.keys.expire_due(limit);
    then();
  });
}

}  // namespace ingot::exec

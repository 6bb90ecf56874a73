// What units lack, and who fetches it or does it for them: jobs on their way through the pool.
#include <utility>

#include "src/contract/table.h"
#include "src/contract/thresholds.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/exec/dry_run.h"
#include "src/exec/prefetch.h"
#include "src/exec/writer.h"
#include "src/metrics/stats.h"
#include "storage/no_wait_reads.h"

namespace ingot::exec {

namespace {

// The declared keys of the job's units that memory does not have. What only overwrites needs none
// of them, unless that is what just missed.
std::vector<std::string> cold_keys(Services& services, const WriteJob& job) {
  std::vector<std::string> cold;
  const auto databases = services.data.store.databases().map;
  const auto leaves_unread = [](const contract::CommandRow& row, const net::Command& command) {
    return may_leave_unread(row, command.args);
  };
  const Unit& missed = job.units[job.next];
  const bool with_overwritten = !services.data.store.can_probe() || job.tries > 1 ||
                                (missed.transaction.empty() && missed.row != nullptr &&
                                 leaves_unread(*missed.row, *missed.command));
  for (size_t i = job.next; i < job.units.size(); ++i) {
    const Unit& unit = job.units[i];
    if (unit.row == nullptr) continue;
    const auto keyspace = (*databases)[static_cast<size_t>(unit.db)];
    if (unit.transaction.empty() &&
        (with_overwritten || !leaves_unread(*unit.row, *unit.command))) {
      add_cold_keys(services, *unit.row, unit.command->args, keyspace, &cold);
    }
    for (const auto& queued : unit.transaction) {
      if (!with_overwritten && leaves_unread(*queued.row, *queued.command)) continue;
      add_cold_keys(services, *queued.row, queued.command->args, keyspace, &cold);
    }
  }
  return cold;
}

// Whether the job's last unit is one that reads little, of one key, and wants something of the
// disk.
bool may_fetch_wanted(const Services& services, const WriteJob& job) {
  constexpr size_t kFewArguments = 8;
  if (!services.data.readers.has_ring() || !job.reads.wants() || job.lacks_levels) return false;
  if (job.fetches == contract::kLookupRuns || job.next + 1 != job.units.size()) return false;
  const Unit& unit = job.units[job.next];
  return unit.row != nullptr && unit.transaction.empty() && !unit.row->runs_script &&
         contract::has_one_key(*unit.row) && unit.command->args.size() <= kFewArguments;
}

}  // namespace

void Writer::suspend(std::unique_ptr<WriteJob> job, NeedsPool wish) {
  ++job->tries;
  auto& waits_since = job->units[job->next].waits_since;
  if (!waits_since) waits_since = std::chrono::steady_clock::now();
  metrics::add(services_.data.stats.rollbacks);
  suspended_.push_back({.job = std::move(job), .wish = std::move(wish)});
}

void Writer::resume_suspended() {
  for (Suspended& suspended : std::exchange(suspended_, {})) {
    if (suspended.only_waits && is_held_back(*suspended.job)) {
      held_back_.push_back(std::move(suspended.job));
    } else if (suspended.only_waits) {
      // The group may have been the one in which they were let go.
      held_.is_held_from(*suspended.job) ? held_.wait(std::move(suspended.job))
                                         : enqueue({.job = std::move(suspended.job)});
    } else if (suspended.wish.work) {
      work_in_pool(std::move(suspended));
    } else {
      load_blocks(std::move(suspended.job));
    }
  }
  if (services_.pause.is_on()) return;
  for (auto& job : std::exchange(held_back_, {})) enqueue({.job = std::move(job)});
}

// Fetches what the job's next unit read in vain, and the declared keys of those behind it.
void Writer::load_blocks(std::unique_ptr<WriteJob> job) {
  if (may_fetch_wanted(services_, *job)) return fetch_wanted(std::move(job));
  // What its run wanted comes on other ways, and would keep the next one from all else.
  job->reads = {};
  std::vector<std::string> cold = cold_keys(services_, *job);
  // Most commands lack no more than that: a dry run would only tell so, for two more switches
  // between threads.
  if (job->tries > 0 && !cold.empty() && job->fetches == 0) {
    ++job->fetches;
    --job->tries;
  }
  prefetch(services_, std::move(cold), [this, job = std::move(job)]() mutable {
    if (job->tries == 0) return enqueue({.job = std::move(job)});
    services_.data.readers.submit([this, job = std::move(job)]() mutable {
      dry_run(services_, *job);
      enqueue({.job = std::move(job)});
    });
  });
}

// The bytes come to where the unit is run again, which takes them from there: nobody else looks for
// them first.
void Writer::fetch_wanted(std::unique_ptr<WriteJob> job) {
  ++job->fetches;
  --job->tries;
  storage::NoWaitReads wanted = std::exchange(job->reads, {});
  auto came = [this, job = std::move(job)]() mutable {
    job->reads = std::exchange(*storage::NoWaitReads::current(), {});
    enqueue({.job = std::move(job)});
    return true;
  };
  services_.data.readers.look_up({.work = std::move(came), .reads = std::move(wanted)});
}

void Writer::work_in_pool(Suspended suspended) {
  auto task = [this, suspended = std::move(suspended)]() mutable {
    Unit& unit = suspended.job->units[suspended.job->next];
    PoolOutcome& outcome = unit.from_pool[suspended.wish.place];
    const int tries = outcome.tries;
    outcome = do_pool_work(services_, unit, suspended.wish.work);
    outcome.tries = tries + 1;
    enqueue({.job = std::move(suspended.job)});
  };
  services_.data.readers.submit(std::move(task), data::Work::kLong);
}

}  // namespace ingot::exec

// One commit group while it is built: the overlay, the keyspace state with its undo, the effects.
// Runs units against it, each under a savepoint, and commits the whole. The writer thread's own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/data/change_stream.h"
#include "src/exec/accounting.h"
#include "src/exec/handlers.h"
#include "src/exec/services.h"
#include "src/exec/settling.h"
#include "src/exec/watch_table.h"
#include "src/exec/write_job.h"
#include "src/exec/writer_sink.h"
#include "src/types/keyspace.h"
#include "storage/overlay.h"

namespace ingot::exec {

// An EXEC that runs anew, or that was not committed, leaves its client as it was. (Only one with
// session commands has the client to itself, and only that can change it.)
void restore_client(Services& services, const WriteJob& job, const Unit& unit);

// How a run of a unit ended.
struct Done {};            // it took effect in the group, and its reply is among the job's
struct NeedsDisk {         // undone: memory cannot answer what it reads
  bool of_levels = false;  // of an order
};
struct NeedsPool {  // undone: a command asked for something that the pool is to make first
  contract::PoolWork work;
  uint64_t place = 0;                                  // of the command in the unit
  std::optional<std::vector<std::string>> holds = {};  // see WriteContext::hold()
};
struct TooLarge {};  // a transaction that would take more memory than there is for it
struct Waits {       // a blocking command that found nothing
  contract::Block block;
};
struct GoesOn {  // kept, and more is to do
  std::string memory;
};
using Outcome = std::variant<Done, NeedsDisk, NeedsPool, Waits, GoesOn, TooLarge>;

// What the pool made for the command at this place in the unit.
const PoolOutcome& pool_outcome(const Unit& unit, uint64_t place);
Earlier earlier_runs(const Unit& unit, uint64_t place);

class Group {
 public:
  Group(Services& services, Settling& settling);

  struct Refusals {
    const std::string& all;
    const std::string& growing;
  };
  // Runs job.units[job.next]. `fed`: it waited, and a key of its was stored or has gone.
  Outcome run(WriteJob& job, const Refusals& refusals, std::optional<contract::Fed> fed = {});
  // What runs from here on does not follow right on what ran last.
  void begin_turn() { just_looked_ = false; }
  // What happens to keys is collected for others than those who WATCH.
  void collect_touched(bool collect) { collect_touched_ = collect; }
  void tell_changes(bool tell) { tells_changes_ = tell; }  // of keys
  // Of the units since the last call: what was stored, and which databases changed.
  types::Effects take_touched();
  // Those whom CLIENT UNBLOCK has named since the last call.
  std::vector<types::Effects::Unblocked> take_unblocked() {
    return std::exchange(effects_.unblocked, {});
  }
  bool exists(int db, std::string_view key);

  // Removes what is due, at most `limit` keys. False when the disk is needed (undone).
  bool expire(size_t limit, bool may_read_disk);
  const std::string& expiry_low_water() const { return state_.expiry_low_water; }
  int64_t next_due_ms() const { return state_.next_due_ms; }

  // What was overwritten unread has been read since, or a keyspace has been counted anew.
  void settle(const OverwrittenBatch& batch);
  void settle(const Recount& recount);
  void begin_recount();  // if it is time; of a group that is empty

  // A change that no client asked for. An error: it is undone.
  storage::Status change(const std::function<void(types::KeyWriter&)>& make);

  // Whether there is anything to write.
  bool empty() const {
    return overlay_.empty() && state_.count_changes.empty() && effects_.told.empty() && !adopted_;
  }
  storage::Overlay& overlay() { return overlay_; }
  size_t bytes() const { return overlay_.bytes() + effects_.notices.bytes + effects_.told.bytes(); }
  // Behind what its units have told replicas: these bytes, behind which this database is selected;
  // nothing: the one that is. Nobody is told while the stream is off.
  void tell_replicas(std::string_view bytes, std::optional<int> db = {});
  // The group makes the data those of a master, as its stream was at this place.
  void adopt(data::ChangeStream::Place place) { adopted_ = std::move(place); }
  // Writes the group, unless it changed nothing; on success its effects are released, on failure
  // it never happened. Either way a new group begins.
  storage::Status commit(storage::Durability durability);

  void unwatch(uint64_t client) { watches_.unwatch(client); }

 private:
  friend class GroupCalls;
  struct Savepoint {
    storage::Overlay::Savepoint overlay;
    types::KeyspaceState::Savepoint state;
    types::Effects::Savepoint effects;
  };
  Savepoint savepoint() const;
  void rollback(const Savepoint& savepoint);
  types::KeyWriter key_writer(int64_t now_ms, types::AccessClock* access = nullptr,
                              uint64_t author = 0);
  types::KeyWriter replaying_writer();
  void remember_reads(const contract::CommandRow& row, contract::Args args,
                      const contract::Client& client);
  void remember_keys(const contract::CommandRow& row, contract::Args args,
                     const contract::Client& client);
  Outcome run_command(WriteJob& job, const Refusals& refusals, std::optional<contract::Fed> fed,
                      types::KeyWriter& keys, contract::RespSink& reply);
  // --- group_transaction.cc
  struct TransactionRun;
  Outcome run_transaction(WriteJob& job, const Refusals& refusals, types::KeyWriter& keys,
                          WriterSink& reply);
  void take_client(const WriteJob& job, Unit& unit);
  std::optional<Outcome> run_queued(TransactionRun& run, size_t index);
  Wish run_handler(TransactionRun& run, size_t index);
  // ---
  Wish run_with_calls(WriteJob& job, const Refusals& refusals, size_t index, const Call& call,
                      Earlier earlier, types::KeyWriter& keys, contract::RespSink& reply);
  bool latch_failure(const PoolOutcome& outcome);
  bool is_next(const FromMaster& unit);
  bool is_refused(const Unit& unit, const Refusals& refusals) const;
  void follow(const Unit& unit);
  void keep(WriteJob& job, types::KeyWriter& keys, const Savepoint& before);
  void remove_expired(const std::vector<types::KeyReader::KeyName>& names);
  types::Effects touched_since(const Savepoint& before) const;
  void put_counts();
  storage::Status write_told();
  void follow_orders();
  storage::Status write(storage::Durability durability);
  void release();

  Services& services_;
  Settling& settling_;
  storage::Overlay overlay_;
  types::KeyspaceState state_;
  types::Effects effects_;
  WatchTable watches_;
  bool collect_touched_ = false;
  bool tells_changes_ = false;
  // When the unit that runs began: when the one before it ended, if it follows right on that. To
  // look at two clocks anew for each would be a fiftieth of the writer's time.
  struct Time {
    Accounting::Clock::time_point now;
    Accounting::Clock::time_point ms_since;
    int64_t ms = 0;  // of the wall clock, at most one ago
  };
  void look_at_clocks();
  void ended(const Accounting& accounting);
  Time time_;
  bool just_looked_ = false;
  std::vector<storage::KeyspaceId> settled_;  // what this group tells the counts of
  types::KeyspaceState::Savepoint begin_;     // of this group
  types::Effects::Savepoint taken_{};         // up to where take_touched() has told
  uint64_t followed_bytes_ = 0;               // of a master's stream, in this group
  std::optional<data::ChangeStream::Place> adopted_;
  std::unique_ptr<storage::Batch> batch_;
};

// Why a write of this kind is not taken now, or null.
const std::string* refusal_for(const contract::CommandRow& row, const Group::Refusals& refusals);

// A command of a master's has failed: something differs here. The master is not told, but somebody
// should know.
void log_master_error(const contract::ReplySink& reply, const contract::CommandRow& row);

}  // namespace ingot::exec

// One commit group while it is built: the overlay, the keyspace state with its undo, the effects.
// Runs units against it, each under a savepoint, and commits the whole. The writer thread's own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/exec/services.h"
#include "src/exec/watch_table.h"
#include "src/exec/writer.h"
#include "src/types/keyspace.h"
#include "storage/overlay.h"

namespace ingot::exec {

// An EXEC that runs anew, or that was not committed, leaves its client in the database in which it
// began. (Only one with session commands has the client to itself, and only that can change it.)
void restore_database(const WriteJob& job, const Unit& unit);

class Group {
 public:
  explicit Group(Services& services);

  enum class Outcome : uint8_t {
    kDone,
    kNeedsDisk,  // undone: reads that memory cannot answer
    kNeedsWork,  // undone: `work()` is to be done in the pool first
    kBlocks,     // it waits, as `take_block()` says
  };

  struct Refusals {
    const std::string& all;
    const std::string& growing;
  };
  // Runs job.units[job.next]; its reply is appended to the job's. `fed`: it waited, and a key of
  // its was stored or has gone.
  Outcome run(WriteJob& job, const Refusals& refusals, std::optional<command::Fed> fed = {});
  // After kBlocks.
  command::Block take_block() { return std::move(*block_); }
  // What happens to keys is collected for others than those who WATCH.
  void collect_touched(bool collect) { collect_touched_ = collect; }
  void want_events(uint32_t kinds) { wanted_events_ = kinds; }
  // Of the units since the last call: what was stored, and which databases changed.
  types::Effects take_touched();
  bool exists(int db, std::string_view key);
  // After kNeedsWork: what is to be done, and for which command of the unit.
  const command::Prepare& work() const { return work_; }
  size_t work_index() const { return work_index_; }

  // Removes what is due, at most `limit` keys. False when the disk is needed (undone).
  bool expire(size_t limit, bool may_read_disk);
  int64_t next_due_ms() const { return state_.next_due_ms; }

  // Whether there is anything to write.
  bool empty() const { return overlay_.empty(); }
  size_t bytes() const { return overlay_.bytes(); }
  // Writes the group, unless it changed nothing; on success its effects are released, on failure
  // it never happened. Either way a new group begins.
  storage::Status commit(storage::Durability durability);

  void unwatch(uint64_t client) { watches_.unwatch(client); }

 private:
  struct Savepoint {
    storage::Overlay::Savepoint overlay;
    types::KeyspaceState::Savepoint state;
    types::Effects::Savepoint effects;
  };
  Savepoint savepoint() const;
  void rollback(const Savepoint& savepoint);
  types::KeyWriter key_writer(types::AccessClock* access);
  void run_command(WriteJob& job, Unit& unit, const Refusals& refusals,
                   std::optional<command::Fed> fed, types::KeyWriter& keys,
                   command::RespSink& reply);
  void run_transaction(WriteJob& job, Unit& unit, const Refusals& refusals, types::KeyWriter& keys,
                       command::RespSink& reply);
  void keep(WriteJob& job, types::KeyWriter& keys, const Savepoint& before);
  void put_counts();
  storage::Status write(storage::Durability durability);
  void release();

  Services& services_;
  storage::Overlay overlay_;
  types::KeyspaceState state_;
  types::Effects effects_;
  WatchTable watches_;
  command::Prepare work_;
  size_t work_index_ = 0;
  std::optional<command::Block> block_;
  bool collect_touched_ = false;
  uint32_t wanted_events_ = 0;
  types::Effects::Savepoint taken_{};  // up to where take_touched() has told
  std::unique_ptr<storage::Batch> batch_;
};

}  // namespace ingot::exec

// What sessions hand to the writer: units of commands, and what became of them.
//
// Threads: owned by one at a time: the session's I/O thread, the writer, or a pool thread that
// fetches or makes something for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/command_batch.h"
#include "net/connection.h"
#include "src/contract/client.h"
#include "src/contract/context.h"
#include "src/contract/reply.h"
#include "src/exec/client_state.h"
#include "src/exec/permission.h"
#include "src/types/told.h"
#include "storage/no_wait_reads.h"

namespace ingot::exec {

// What the pool made for a command that asked for it (WriteContext::from_pool()), or why it could
// not.
struct PoolOutcome {
  std::shared_ptr<contract::PoolResult> result;
  storage::Status status;
  int tries = 0;  // with this one
};

// Of a unit that the master has sent: its place in the master's stream.
struct FromMaster {
  // What is not held of it: the value of a command, at its place in `bytes`.
  struct Long {
    size_t at;
    types::LongWord word;
  };
  uint64_t link;            // the connection that it came by (Following::link)
  uint64_t begin;           // the offset before it
  uint64_t end;             // ... behind it
  std::string bytes;        // as they came, which replicas of this one are told
  std::vector<Long> longs;  // in order
  int db;                   // selected behind them
};

// An EXEC with session commands: what it may change of its client, as that was before; and those
// commands that have run, by their place among its commands. What they do to more than their client
// lasts when the unit is undone, so they do not run again with it.
struct ExecClient {
  ExecClient(const contract::Client& client, const contract::Channels* channels,
             const contract::Tracking& tracking, uint64_t newest)
      : before(client), hearing(client, channels, tracking), newest_client(newest) {}

  struct Ran {
    std::string reply;
    ClientState after;
  };
  const ClientState before;
  const ClientHearing hearing;
  const uint64_t newest_client;  // of all, when it began
  std::map<size_t, Ran> ran;
};

// One thing that takes effect as a whole: a command, or an EXEC with its commands.
struct Unit {
  const contract::CommandRow* row = nullptr;  // null: only `canned` is answered
  net::BatchPtr batch;                        // keeps the arguments
  const net::Command* command = nullptr;
  int db = 0;
  int resp = 2;
  bool remembers_reads = false;                      // its client tracks what it reads
  bool silent = false;                               // CLIENT REPLY OFF: runs, answers nothing
  bool replayed = false;                             // out of a log of Redis
  std::vector<contract::QueuedCommand> transaction;  // of EXEC
  TransactionPermission permission = {};             // of it
  std::string canned;                                // an encoded reply that keeps its place
  // Beside `canned`: what a read before it has found expired, to be removed.
  std::vector<types::KeyReader::KeyName> expired = {};
  std::unique_ptr<ExecClient> exec_client = {};
  // The place of the last command in it that has been counted (Accounting), in whichever run.
  // last_place_in_unit(): all of it.
  uint64_t counted = 0;
  // When a run of it first missed what only the disk has, or asked the pool.
  std::optional<std::chrono::steady_clock::time_point> waits_since = {};
  // It is blocked until so many replicas have the stream up to here: on stable storage, perhaps,
  // and what was committed then is to be there on this server, too.
  struct AwaitedAcks {
    size_t replicas;
    uint64_t offset;
    bool on_disk;
    bool for_sync;
    bool is_synced = false;
  };
  std::optional<AwaitedAcks> waits_for_acks = {};
  std::string went_on;                   // see WriteContext::go_on()
  std::vector<net::BatchPtr> arguments;  // of what its scripts asked the pool for
  uint64_t seed = 0;                     // of math.random() in its scripts; 0: not yet drawn
  // Set: it is bound by no limits and rules for clients. Together with `row` null: bytes that
  // change nothing.
  std::unique_ptr<FromMaster> from_master = {};
  // What a master or a log tells has been answered there: nothing expires on its way, nor is it
  // too large.
  bool happened_elsewhere() const { return from_master || replayed; }
  // By the place of the command that asked for it.
  std::map<uint64_t, PoolOutcome> from_pool;
};

// The place of a command in its unit: the only one, or one of the transaction. Of the n-th that its
// script calls: n more.
inline uint64_t place_in_unit(size_t index) {
  return static_cast<uint64_t>(index) << 32;
}
inline uint64_t last_place_in_unit(size_t index) {
  return place_in_unit(index + 1) - 1;
}

// Consecutive writes of one connection, in order.
struct WriteJob {
  std::shared_ptr<contract::Client> client;
  std::vector<Unit> units;
  // Called once when all units are committed (or refused), on `thread`, with the encoded replies
  // of all units in order.
  net::IoThread* thread = nullptr;
  std::move_only_function<void(contract::EncodedReply replies, bool given_up)> done;
  contract::EncodedReply replies;
  bool told_others = false;  // some unit did: messages, events
  bool given_up = false;     // it would have waited, for a client that is leaving
  // The first group of its units that told replicas of changes: its first unit, and where the
  // answers of these begin.
  struct Begin {
    size_t unit;
    size_t mark;
  };
  std::optional<Begin> told_from = {};

  // The writer's own progress:
  size_t next = 0;               // the unit to run
  size_t first_uncommitted = 0;  // units from here to `next` have run in the open group
  size_t committed_mark = 0;     // of replies.bytes
  int tries = 0;                 // runs of that unit which needed the disk, but for
  unsigned fetches = 0;          // the first of them, behind which what they lacked was fetched
  storage::NoWaitReads reads;    // what the last run wanted, or what of that has come
  int64_t queued_ms = 0;         // steady; when it came into the queue; 0: it has begun
  bool lacks_levels = false;     // the last of them did for the count levels of an order
};

}  // namespace ingot::exec

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

namespace ingot::exec {

// What the pool made for a command that asked for it (WriteContext::from_pool()), or why it could
// not.
struct PoolOutcome {
  std::shared_ptr<contract::PoolResult> result;
  storage::Status status;
  int tries = 0;  // with this one
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
  std::vector<contract::QueuedCommand> transaction;  // of EXEC
  TransactionPermission permission = {};             // of it
  std::string canned;                                // an encoded reply that keeps its place
  // Beside `canned`: what a read before it has found expired, to be removed.
  std::vector<types::KeyReader::KeyName> expired = {};
  std::unique_ptr<ClientState> client_before = {};  // of an EXEC that may change its client
  // When a run of it first missed what only the disk has, or asked the pool.
  std::optional<std::chrono::steady_clock::time_point> waits_since = {};
  bool waits_for_sync = false;           // it is blocked until all that is committed is synced
  std::string went_on;                   // see WriteContext::go_on()
  std::vector<net::BatchPtr> arguments;  // of what its scripts asked the pool for
  uint64_t seed = 0;                     // of math.random() in its scripts; 0: not yet drawn
  // By the place of the command that asked for it.
  std::map<uint64_t, PoolOutcome> from_pool;
};

// The place of a command in its unit: the only one, or one of the transaction. Of the n-th that its
// script calls: n more.
inline uint64_t place_in_unit(size_t index) {
  return static_cast<uint64_t>(index) << 32;
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

  // The writer's own progress:
  size_t next = 0;               // the unit to run
  size_t first_uncommitted = 0;  // units from here to `next` have run in the open group
  size_t committed_mark = 0;     // of replies.bytes
  int tries = 0;                 // runs of that unit which needed the disk
  int64_t queued_ms = 0;         // steady; when it came into the queue; 0: it has begun
  bool lacks_levels = false;     // the last of them did for the count levels of an order
};

}  // namespace ingot::exec

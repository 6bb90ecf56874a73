// What a command gets to work with. A handler knows nothing of threads, sockets or engines: a read
// handler sees one state, a write handler the writer's overlay, a session handler no data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/command/args.h"
#include "src/command/client.h"
#include "src/command/reply.h"
#include "src/command/row.h"
#include "src/types/keyspace.h"

namespace ingot::exec {
class Store;
class View;
struct Services;
}  // namespace ingot::exec
namespace ingot::types {
class StagedString;
}

namespace ingot::command {

// What commands ask of the running server. Every reference outlives every command.
using Services = exec::Services;

class ReadContext {
 public:
  types::KeyReader& keys;
  ReplySink& reply;
  int db;
  Services& services;
  // The state that is read, for replies that go on reading after the command returned (streams).
  // Null inside EXEC with writes and in a probe without a snapshot.
  std::shared_ptr<const exec::View> view;

  int64_t now_ms() const { return keys.now_ms(); }
};

// Work that is too large for the writer: done in the pool at a view, its result kept for the
// unit's next run. See Writer.
struct Prepared {
  virtual ~Prepared() = default;
};
using Prepare = std::function<std::shared_ptr<Prepared>(types::KeyReader& keys, exec::Store& store,
                                                        storage::Status* error)>;

// A client that waits for a key to be fed. After its time it is answered a null array.
struct Block {
  std::vector<std::string> keys;
  int64_t until_ms = 0;     // Unix; 0: for ever
  std::string memory = {};  // given back when it runs again
};

// Why a blocked command runs again.
struct Fed {
  std::string_view key;     // that was stored or removed
  std::string_view memory;  // of its Block
};

class WriteContext {
 public:
  types::KeyWriter& keys;
  ReplySink& reply;
  int db;
  Services& services;
  Client& client;  // its plain members may be changed only by commands that route as exclusive

  // The large argument that was staged instead of standing in the arguments, or null.
  types::StagedString* staged = nullptr;
  // What an earlier run of this command asked for by needs(), or null.
  std::shared_ptr<Prepared> prepared = nullptr;
  // Preparing did not help (the source kept changing, or only this transaction has it): a large
  // result must be made here and now, without needs().
  bool in_place = false;
  // Whether block() may be called: not inside EXEC, where a blocking command answers at once what
  // it would after its time-out.
  bool may_block = false;
  // Set when a blocked command runs again because a key of its was fed: it serves itself from this
  // one, or blocks again and keeps its place.
  std::optional<Fed> fed = {};

  int64_t now_ms() const { return keys.now_ms(); }

  // Gives up this run: everything is undone, `work` runs in the pool, then the command runs again
  // with `prepared` set. The handler returns right after.
  void needs(Prepare work) { work_ = std::move(work); }
  const Prepare& work() const { return work_; }

  // Waits instead of answering; the handler, which wrote nothing, returns right after.
  void block(Block block) { block_ = std::move(block); }
  std::optional<Block>& blocked() { return block_; }

  // By needs() and block(); not private, so that the context stays an aggregate.
  Prepare work_ = {};
  std::optional<Block> block_ = {};
};

class SessionContext {
 public:
  Client& client;
  ReplySink& reply;
  Services& services;
  bool in_exec = false;
};

}  // namespace ingot::command

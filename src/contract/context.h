// What a command gets to work with. A handler knows nothing of threads, sockets or engines: a read
// handler sees one state, a write handler the writer's overlay, a session handler no data. Every
// reference outlives every command.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/contract/args.h"
#include "src/contract/client.h"
#include "src/contract/client_registry.h"
#include "src/contract/command_caller.h"
#include "src/contract/reply.h"
#include "src/contract/row.h"
#include "src/contract/running_server.h"
#include "src/types/keyspace.h"

// Of the floors above: handlers hand these on, and need not know what is in them.
namespace ingot::settings {
class Config;
}
namespace ingot::access {
class Users;
}
namespace ingot::script {
class Scripts;
}
namespace ingot::data {
class BuiltArgument;
class View;
struct Services;
}  // namespace ingot::data

namespace ingot::contract {

class Replicas;
class Table;

class ReadContext {
 public:
  types::KeyReader& keys;
  ReplySink& reply;
  int db;
  const settings::Config& config;
  data::Services& data;  // for replies that are sorted or streamed
  RunningServer& server;
  script::Scripts& scripts;
  uint64_t client_id;
  CommandCaller* caller = nullptr;  // of those that run scripts (CommandRow::runs_script)
  // As earlier units of the writer's group and commands of this one have made them. Null: as they
  // are committed.
  std::shared_ptr<const script::Libraries> libraries = nullptr;
  // The state that is read, for replies that go on reading after the command returned (streams).
  // Null inside EXEC with writes and in a probe without a snapshot.
  std::shared_ptr<const data::View> view;

  int64_t now_ms() const { return keys.now_ms(); }
};

// What came of work that was too large for the writer and done in the pool; see from_pool().
struct PoolResult {
  virtual ~PoolResult() = default;
};
// Failures latch in keys.data().
using PoolWork = std::function<std::shared_ptr<PoolResult>(types::KeyReader& keys)>;

// A client that waits for a key to be fed, or for what is committed by now to be elsewhere. After
// its time it is answered a null array, or who has it.
struct Block {
  std::vector<std::string> keys;
  std::optional<size_t> for_acks = {};  // so many replicas have it
  bool on_disk = false;                 // on stable storage, those do
  bool for_sync = false;                // and this server, too
  int64_t until_ms = 0;                 // Unix; 0: for ever
  std::string memory = {};              // given back when it runs again
  bool for_removal = false;             // it runs again for a key that is removed, too
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
  const settings::Config& config;
  data::Services& data;  // for values that are built beside the writer
  const ClientRegistry& clients;
  Channels& channels;
  script::Scripts& scripts;
  const Replicas& replicas;
  uint64_t client_id;
  CommandCaller* caller = nullptr;  // of those that run scripts (CommandRow::runs_script)

  // The large argument that is in the engine already instead of standing among the arguments, or
  // null.
  data::BuiltArgument* argument = nullptr;
  // The same for those who only tell of it.
  types::LongWord long_argument = {};
  // What an earlier run of this command asked the pool for, or null.
  std::shared_ptr<PoolResult> earlier = nullptr;
  // A run for its blocks alone, of which nothing is kept.
  bool is_dry = false;
  // The pool did not help (the data kept changing, or only this transaction has it): what is needed
  // must be made here and now, however large.
  bool in_place = false;
  // Whether block() may be called: not inside EXEC, where a blocking command answers at once what
  // it would after its time-out.
  bool may_block = false;
  // Set when a blocked command runs again because a key of its was fed: it serves itself from this
  // one, or blocks again and keeps its place.
  std::optional<Fed> fed = {};
  // What the run before gave to go_on(); empty: this is the first.
  std::string_view went_on = {};
  // As how many changes the command counts (rdb_changes_since_last_save); nothing: one for each key
  // that it stored or removed.
  std::optional<uint64_t> changes = {};
  bool is_told = true;  // false: a script keeps it from replicas

  int64_t now_ms() const { return keys.now_ms(); }

  // --- what replicas are told (docs/replication-stream.md): the command as it stands, if it counts
  // changes, unless it says otherwise here

  // Whether anybody is told: else there is no need to make the words.
  bool tells() const { return is_told && keys.tells_replicas(); }
  // These words instead; more than one command makes a transaction. words[value_at] is the argument
  // that holds a value, which may be in the engine.
  void tell(Args words, size_t value_at = 0) {
    telling_ = Telling::kOwn;
    if (!tells()) return;
    keys.effects().told.tell(db, words, value_at,
                             value_at == 0 ? types::LongWord() : long_argument);
  }
  void tell(std::initializer_list<std::string_view> words, size_t value_at = 0) {
    tell(Args(words.begin(), words.size()), value_at);
  }
  // So many commands, read when the group is committed.
  void tell(uint64_t commands, std::shared_ptr<const types::ToldBytes> encoded) {
    telling_ = Telling::kOwn;
    if (tells()) keys.effects().told.tell(db, commands, std::move(encoded));
  }
  void tell_nothing() { telling_ = Telling::kOwn; }
  void tell_unchanged() { telling_ = Telling::kVerbatim; }  // also when it counts no change

  // What `work` makes of the data: done in the pool at a view while this run is given up, or here
  // when that has not helped (`here`). `fits` tells whether the data is still as the pool saw it.
  // Null: the run is given up or reading failed; the handler returns right after.
  template <typename Result, typename Fits, typename Work>
  std::shared_ptr<Result> from_pool(const Fits& fits, const Work& work, bool here) {
    auto result = std::dynamic_pointer_cast<Result>(earlier);
    if (result && fits(*result)) return result;
    if (!here || is_dry) {
      work_ = work;
      return nullptr;
    }
    result = work(keys);
    keys.effects().kept.push_back(result);
    return keys.data().failed() ? nullptr : result;
  }

  // Before from_pool(): commands of others that name a key of this unit, or one like these patterns
  // (any text for the "*"), wait until it is over.
  void hold(std::vector<std::string> patterns) {
    if (!holds_) holds_ = std::move(patterns);
  }

  // Waits instead of answering; the handler, which wrote nothing, returns right after.
  void block(Block block) { block_ = std::move(block); }

  // There is more to do than fits one unit: what is written stands for itself, and the command runs
  // again when others have had their turn. Not inside EXEC, where may_block is false; `memory` is
  // not empty.
  void go_on(std::string memory) { goes_on_ = std::move(memory); }

  // What the run asked for instead of answering. Not private, so that the context stays an
  // aggregate.
  PoolWork work_ = {};
  std::optional<std::vector<std::string>> holds_ = {};
  std::optional<Block> block_ = {};
  std::string goes_on_ = {};
  enum class Telling : uint8_t { kIfChanged, kVerbatim, kOwn } telling_ = Telling::kIfChanged;
};

class SessionContext {
 public:
  Client& client;
  ReplySink& reply;
  settings::Config& config;
  ClientRegistry& clients;
  access::Users& users;
  Channels& channels;
  Tracking& tracking;
  const Table& table;
  RunningServer& server;
  script::Scripts& scripts;
  // What an open transaction's group has done, inside EXEC with writes; else null.
  const types::Effects* in_group = nullptr;
  bool in_exec = false;
  // Whoever has a higher id has connected since its EXEC began: to Redis, after that.
  uint64_t newest_client = std::numeric_limits<uint64_t>::max();
};

}  // namespace ingot::contract

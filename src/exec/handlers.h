// Runs one command's handler, whatever its kind.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "src/contract/client.h"
#include "src/contract/context.h"
#include "src/exec/services.h"

namespace ingot::exec {

// What is run; a container's row is its subcommand's.
struct Call {
  const contract::CommandRow& row;
  const net::Command& command;
  int db;
  uint64_t client_id;
  uint64_t newest_client = std::numeric_limits<uint64_t>::max();  // see SessionContext
};

// `view`, `libraries`: see ReadContext.
void run_read(Services& services, const Call& call, std::shared_ptr<const data::View> view,
              types::KeyReader& keys, contract::ReplySink& reply,
              contract::CommandCaller* caller = nullptr,
              std::shared_ptr<const script::Libraries> libraries = nullptr);

// Whether what the client looks up by this command counts as used.
inline bool marks_access(const contract::Client& client, const contract::CommandRow& row) {
  return !client.no_touch.load(std::memory_order_relaxed) || row.name == "touch";
}

// What a write command's run is given beside its arguments; see WriteContext.
struct Earlier {
  std::shared_ptr<contract::PoolResult> result;
  bool is_dry = false;
  bool in_place = false;
  bool may_block = false;
  std::optional<contract::Fed> fed;
  std::string_view went_on = {};
  contract::CommandCaller* caller = nullptr;
  bool is_told = true;
};

// A value of the command that is in the engine, for those who tell of it; or none.
types::LongWord long_word(const net::Command& command);

// What it asked for instead of answering, if anything.
struct Wish {
  contract::PoolWork work;
  std::optional<std::vector<std::string>> holds;  // see WriteContext::hold()
  std::optional<contract::Block> block;
  std::string goes_on;
  uint64_t place = 0;  // in its unit (place_in_unit()), of a command that a script called
};
Wish run_write(Services& services, const Call& call, const Earlier& earlier, types::KeyWriter& keys,
               contract::ReplySink& reply);

// Of a transaction: reads, writes and session commands alike. SELECT changes the client's database;
// the protocol version of `reply` follows HELLO. Nothing blocks.
Wish run_any(Services& services, const Call& call, contract::Client& client, const Earlier& earlier,
             types::KeyWriter& keys, contract::RespSink& reply);

// `in_exec`: see SessionContext.
void run_session(Services& services, const Call& call, contract::Client& client,
                 contract::ReplySink& reply, bool in_exec,
                 const types::Effects* in_group = nullptr);

}  // namespace ingot::exec

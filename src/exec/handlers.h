// Runs one command's handler, whatever its kind, and words the errors that executors share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/command/client.h"
#include "src/command/context.h"
#include "src/exec/services.h"
#include "storage/status.h"

namespace ingot::exec {

// What a client is told when storage failed under its command.
std::string storage_error(const storage::Status& status);

void run_read(Services& services, const command::CommandRow& row, command::Args args, int db,
              std::shared_ptr<const View> view, types::KeyReader& keys,
              command::ReplySink& reply);

// What a write command's run is given beside its arguments; see WriteContext.
struct Earlier {
  std::shared_ptr<command::Prepared> prepared;
  bool in_place = false;
  bool may_block = false;
  std::optional<command::Fed> fed;
};

// What it asked for instead of answering, if anything.
struct Wish {
  command::Prepare work;  // to be done in the pool
  std::optional<command::Block> block;
};
Wish run_write(Services& services, const command::CommandRow& row,
                           const net::Command& command, int db, command::Client& client,
                           const Earlier& earlier, types::KeyWriter& keys,
                           command::ReplySink& reply);

// Of a transaction: reads, writes and session commands alike. `*db` follows SELECT; the protocol
// version of `reply` follows HELLO. Answers the work that is to be done in the pool, if any.
command::Prepare run_any(Services& services, const command::QueuedCommand& queued, int* db,
                         command::Client& client, const Earlier& earlier, types::KeyWriter& keys,
                         command::RespSink& reply);

}  // namespace ingot::exec

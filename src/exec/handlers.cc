// Calling handlers by kind; see handlers.h.
#include "src/exec/handlers.h"

#include "src/exec/writer.h"
#include "src/types/staged_string.h"

namespace ingot::exec {

std::string storage_error(const storage::Status& status) {
  if (status.code() == storage::Status::Code::kNoSpace) {
    return "MISCONF Errors writing to the AOF file: No space left on device";
  }
  return "ERR storage error: " + status.message();
}

void run_read(Services& services, const command::CommandRow& row, command::Args args, int db,
              std::shared_ptr<const View> view, types::KeyReader& keys,
              command::ReplySink& reply) {
  command::ReadContext context{
      .keys = keys, .reply = reply, .db = db, .services = services, .view = std::move(view)};
  keys.keeps_missed = services.writer.wants_event(types::notify::kKeyMiss);
  std::get<command::ReadHandler>(row.handler)(context, args);
}

Wish run_write(Services& services, const command::CommandRow& row,
                           const net::Command& command, int db, command::Client& client,
                           const Earlier& earlier, types::KeyWriter& keys,
                           command::ReplySink& reply) {
  auto* staged = static_cast<types::StagedString*>(command.stage.get());
  command::WriteContext context{.keys = keys,
                                .reply = reply,
                                .db = db,
                                .services = services,
                                .client = client,
                                .staged = staged,
                                .prepared = earlier.prepared,
                                .in_place = earlier.in_place,
                                .may_block = earlier.may_block,
                                .fed = earlier.fed};
  std::get<command::WriteHandler>(row.handler)(context, command.args);
  return {.work = context.work(), .block = std::move(context.blocked())};
}

command::Prepare run_any(Services& services, const command::QueuedCommand& queued, int* db,
                         command::Client& client, const Earlier& earlier, types::KeyWriter& keys,
                         command::RespSink& reply) {
  const command::CommandRow& row = *queued.row;
  if (command::is_write(row)) {
    return run_write(services, row, *queued.command, *db, client, earlier, keys, reply).work;
  }
  if (command::is_read(row)) {
    run_read(services, row, queued.command->args, *db, nullptr, keys, reply);
    return {};
  }
  command::SessionContext context{
      .client = client, .reply = reply, .services = services, .in_exec = true};
  std::get<command::SessionHandler>(row.handler)(context, queued.command->args);
  *db = client.db;
  return {};
}

}  // namespace ingot::exec

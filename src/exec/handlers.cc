// Making each kind of handler its context.
#include "src/exec/handlers.h"

#include "src/data/built_argument.h"

namespace ingot::exec {

static void keep_missed(const Services& services, types::KeyReader& keys) {
  keys.keeps_missed = (services.couriers.event_kinds() & types::notify::kKeyMiss) != 0;
}

types::LongWord long_word(const net::Command& command) {
  auto* const argument = static_cast<data::BuiltArgument*>(command.sink.get());
  if (argument == nullptr) return {};
  return {.bytes = argument->length(), .source = argument->shared_from_this()};
}

// What the handler has left to its caller.
static void tell_replicas(const contract::WriteContext& context, const Call& call,
                          uint64_t changes) {
  using Telling = contract::WriteContext::Telling;
  if (context.telling_ == Telling::kOwn || call.row.runs_script || !context.tells()) return;
  if (changes == 0 && context.telling_ != Telling::kVerbatim) return;
  context.keys.effects().told.tell(call.db, call.command.args, call.command.diverted_index,
                                   context.long_argument);
}

void run_read(Services& services, const Call& call, std::shared_ptr<const data::View> view,
              types::KeyReader& keys, contract::ReplySink& reply, contract::CommandCaller* caller,
              std::shared_ptr<const script::Libraries> libraries) {
  contract::ReadContext context{.keys = keys,
                                .reply = reply,
                                .db = call.db,
                                .config = services.data.config,
                                .data = services.data,
                                .server = services.server,
                                .scripts = services.scripts,
                                .client_id = call.client_id,
                                .caller = caller,
                                .libraries = std::move(libraries),
                                .view = std::move(view)};
  keep_missed(services, keys);
  std::get<contract::ReadHandler>(call.row.handler)(context, call.command.args);
}

Wish run_write(Services& services, const Call& call, const Earlier& earlier, types::KeyWriter& keys,
               contract::ReplySink& reply) {
  contract::WriteContext context{
      .keys = keys,
      .reply = reply,
      .db = call.db,
      .config = services.data.config,
      .data = services.data,
      .clients = services.clients,
      .channels = services.channels,
      .scripts = services.scripts,
      .replicas = services.replicas,
      .client_id = call.client_id,
      .caller = earlier.caller,
      .argument = static_cast<data::BuiltArgument*>(call.command.sink.get()),
      .earlier = earlier.result,
      .is_dry = earlier.is_dry,
      .in_place = earlier.in_place,
      .may_block = earlier.may_block,
      .fed = earlier.fed,
      .went_on = earlier.went_on,
      .is_told = earlier.is_told};
  if (context.tells()) context.long_argument = long_word(call.command);
  keep_missed(services, keys);
  types::Effects& effects = keys.effects();
  const uint64_t changes_before = effects.changes;
  std::get<contract::WriteHandler>(call.row.handler)(context, call.command.args);
  const uint64_t by_itself = effects.changes - changes_before;
  if (context.changes) effects.changes = changes_before + *context.changes;
  tell_replicas(context, call, context.changes.value_or(by_itself));
  return {.work = std::move(context.work_),
          .holds = std::move(context.holds_),
          .block = std::move(context.block_),
          .goes_on = std::move(context.goes_on_)};
}

Wish run_any(Services& services, const Call& call, contract::Client& client, const Earlier& earlier,
             types::KeyWriter& keys, contract::RespSink& reply) {
  if (contract::is_write(call.row)) return run_write(services, call, earlier, keys, reply);
  if (contract::is_read(call.row)) {
    run_read(services, call, nullptr, keys, reply, earlier.caller, keys.effects().libraries);
  } else {
    run_session(services, call, client, reply, /*in_exec=*/true, &keys.effects());
  }
  return {};
}

void run_session(Services& services, const Call& call, contract::Client& client,
                 contract::ReplySink& reply, bool in_exec, const types::Effects* in_group) {
  contract::SessionContext context{.client = client,
                                   .reply = reply,
                                   .config = services.data.config,
                                   .clients = services.clients,
                                   .users = services.users,
                                   .channels = services.channels,
                                   .tracking = services.tracking,
                                   .table = services.table,
                                   .server = services.server,
                                   .scripts = services.scripts,
                                   .in_group = in_group,
                                   .in_exec = in_exec,
                                   .newest_client = call.newest_client};
  std::get<contract::SessionHandler>(call.row.handler)(context, call.command.args);
}

}  // namespace ingot::exec

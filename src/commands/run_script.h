// What EVAL, FCALL and their relatives share: their keys and arguments, and a run from a host to
// its end.
#pragma once

#include <optional>
#include <string>

#include "src/commands/vocabulary.h"
#include "src/contract/errors.h"
#include "src/script/scripts.h"

namespace ingot::commands {

struct ScriptArgs {
  Args keys;
  Args argv;
};

// Of "name numkeys key ... arg ..."; nothing when an error was answered.
inline std::optional<ScriptArgs> script_args(ReplySink& reply, Args args,
                                             std::string_view not_number) {
  const std::optional<int64_t> count = contract::parse_integer(args[2]);
  const Args rest = args.subspan(3);
  if (!count) {
    reply.error(not_number);
  } else if (*count > static_cast<int64_t>(rest.size())) {
    reply.error("ERR Number of keys can't be greater than number of args");
  } else if (*count < 0) {
    reply.error("ERR Number of keys can't be negative");
  } else {
    return ScriptArgs{.keys = rest.first(static_cast<size_t>(*count)),
                      .argv = rest.subspan(static_cast<size_t>(*count))};
  }
  return std::nullopt;
}

// Of their rows:

constexpr contract::KeySpec keys_of_script(uint32_t flags, std::string_view notes) {
  return {.flags = flags,
          .begin = 2,
          .find = contract::KeySpec::Find::kKeyCount,
          .first_key = 1,
          .notes = notes};
}

// Of a command whose script only reads; `row` is one of the table's.
constexpr CommandRow reading_row(const CommandRow& row, contract::ReadHandler handler) {
  CommandRow variant = contract::variant_of(row, handler);
  variant.scans = true;
  return variant;
}

// False: why the script may not begin has been answered.
template <typename Context>
bool may_begin(Context& ctx, uint32_t flags, bool declares) {
  const bool may_write = declares && (flags & script::flag::kNoWrites) == 0;
  const bool allows_stale = (flags & script::flag::kAllowStale) != 0;
  const std::string why = ctx.caller->begin_refusal(may_write, allows_stale);
  if (!why.empty()) ctx.reply.error(why);
  return why.empty();
}

// `run(host, invocation)` runs it there.
template <typename Context, typename Run>
void run_leased(Context& ctx, script::RunInfo info, const ScriptArgs& args, uint32_t flags,
                const Run& run) {
  using Place = contract::CommandCaller::Place;
  info.client_id = ctx.client_id;
  info.holds_writer = ctx.caller->place() == Place::kWriter;
  info.is_dry = ctx.caller->place() == Place::kDry;
  script::Scripts::Lease lease(ctx.scripts, info);
  if (lease.host() == nullptr) return ctx.reply.error(contract::kOutOfMemory);
  const bool ended =
      run(*lease.host(), script::Invocation{.caller = *ctx.caller,
                                            .run = lease.run(),
                                            .reply = ctx.reply,
                                            .keys = args.keys,
                                            .argv = args.argv,
                                            .no_writes = (flags & script::flag::kNoWrites) != 0,
                                            .allow_oom = (flags & script::flag::kAllowOom) != 0,
                                            .reply_bytes_max = ctx.scripts.reply_bytes_max()});
  if (!ended && lease.run().stopped()) {
    ctx.keys.data().latch_error({storage::Status::Code::kInvalid, "the server is shutting down"});
  }
}

}  // namespace ingot::commands

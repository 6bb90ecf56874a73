// Holding all clients back for a while, and ending the wait of one.
#include "src/commands/client_waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "src/contract/client_registry.h"

namespace ingot::commands {

namespace {

// Whether there are no more arguments than these; else that has been answered.
bool has_at_most(WriteContext& context, Args args, size_t most) {
  if (args.size() <= most) return true;
  context.reply.error(fmt::format(
      "ERR unknown subcommand or wrong number of arguments for '{}'. Try CLIENT HELP.", args[1]));
  return false;
}

}  // namespace

void client_pause(WriteContext& context, Args args) {
  if (!has_at_most(context, args, 4)) return;
  using What = types::Effects::Pause::What;
  What what = What::kAll;
  if (args.size() > 3) {
    const auto mode =
        ArgReader(args, 3).choice<What>({{"write", What::kChanges}, {"all", What::kAll}});
    if (!mode) {
      return context.reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
    what = *mode;
  }
  const std::optional<int64_t> wait_ms = contract::parse_integer(args[2]);
  if (!wait_ms) return context.reply.error("ERR timeout is not an integer or out of range");
  if (*wait_ms < 0) return context.reply.error("ERR timeout is negative");
  // As Redis since 7.2. In 7.0 that overflows, and is over at once.
  if (*wait_ms > std::numeric_limits<int64_t>::max() - context.now_ms()) {
    return context.reply.error("ERR timeout is out of range");
  }
  context.keys.effects().pauses.push_back({.what = what, .until_ms = context.now_ms() + *wait_ms});
  context.reply.ok();
}

void client_unpause(WriteContext& context, Args) {
  context.keys.effects().pauses.push_back({.what = types::Effects::Pause::What::kEnd});
  context.reply.ok();
}

void client_unblock(WriteContext& context, Args args) {
  if (!has_at_most(context, args, 4)) return;
  bool as_error = false;
  if (args.size() > 3) {
    const auto reason = ArgReader(args, 3).choice<bool>({{"timeout", false}, {"error", true}});
    if (!reason) {
      return context.reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
    as_error = *reason;
  }
  const std::optional<int64_t> id = contract::parse_integer(args[2]);
  if (!id) return context.reply.error(contract::error::kNotInteger);
  auto& unblocked = context.keys.effects().unblocked;
  const auto client = static_cast<uint64_t>(*id);
  bool waits = false;
  context.clients.visit(
      client, [&](const contract::Client& other) { waits = other.waits_in.load() != nullptr; });
  if (std::ranges::count(unblocked, client, &types::Effects::Unblocked::client) > 0) waits = false;
  if (waits) unblocked.push_back({.client = client, .as_error = as_error});
  context.reply.integer(waits ? 1 : 0);
}

}  // namespace ingot::commands

// Replies with what is pending in a group of a stream, however much it is: XPENDING and XINFO.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "src/commands/stream_key.h"
#include "src/contract/context.h"
#include "src/types/stream_value.h"

namespace ingot::commands {

struct PendingList {
  StreamRange range = {};
  int64_t delivered_until_ms = std::numeric_limits<int64_t>::max();  // only what was, by then
  uint64_t count = std::numeric_limits<uint64_t>::max();
  std::optional<types::StreamConsumer> consumer = {};  // only what this one has
};

// Writes one; let it capture by value, for it may run later and on other threads.
using WritePending =
    std::function<void(const types::StreamPending& pending, contract::ReplySink& reply)>;

// An array of those that the list takes, few at once, many from the view. `record` is the stream's.
// In vain where others would have to wait: then the handler runs again where they do not.
void reply_pending_list(contract::ReadContext& ctx, const types::StreamReader& stream,
                        const types::Record& record, const types::StreamGroup& group,
                        PendingList list, WritePending write);

}  // namespace ingot::commands

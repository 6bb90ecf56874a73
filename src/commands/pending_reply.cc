// They are counted first, for the array's header, and read once more when they are many.
#include "src/commands/pending_reply.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/commands/element_reply.h"
#include "src/contract/thresholds.h"

namespace ingot::commands {

using types::StreamGroup;
using types::StreamPending;
using types::StreamReader;

namespace {

// Calls `each` for those that the list takes, but for its count.
void walk_list(const StreamReader& stream, const StreamGroup& group, const PendingList& list,
               const StreamReader::EachPending& each) {
  if (group.pending == 0) return;
  const auto take = [&](const StreamPending& pending) {
    if (pending.id > list.range.last) return false;
    return pending.delivered_ms > list.delivered_until_ms || each(pending);
  };
  if (!list.consumer) return stream.walk_pending(group, list.range.first, take);
  if (list.consumer->pending == 0) return;
  stream.walk_pending(group, *list.consumer, list.range.first, take);
}

// How many are looked at, at most.
uint64_t visits(const StreamGroup& group, const PendingList& list) {
  const uint64_t pending = list.consumer ? list.consumer->pending : group.pending;
  const bool takes_all = list.delivered_until_ms == std::numeric_limits<int64_t>::max();
  return takes_all ? std::min(pending, list.count) : pending;
}

}  // namespace

void reply_pending_list(contract::ReadContext& ctx, const StreamReader& stream,
                        const types::Record& record, const StreamGroup& group, PendingList list,
                        WritePending write) {
  const uint64_t visited = visits(group, list);
  if (visited > contract::kVisitedOnIoThread && !ctx.keys.data().begin_walk(visited)) return;
  std::vector<StreamPending> held;
  uint64_t found = 0;
  if (list.count > 0) {
    walk_list(stream, group, list, [&](const StreamPending& pending) {
      if (found < contract::kHeldElements) held.push_back(pending);
      return ++found != list.count;
    });
  }
  const bool streams = found > held.size() && can_stream(ctx);
  if (ctx.keys.data().failed()) return;
  ctx.reply.array(found);
  if (found == held.size()) {
    for (const StreamPending& pending : held) write(pending, ctx.reply);
    return;
  }
  list.count = found;
  if (!streams) {
    uint64_t left = found;
    return walk_list(stream, group, list, [&](const StreamPending& pending) {
      write(pending, ctx.reply);
      return --left > 0;
    });
  }
  stream_reply(
      ctx.data, ctx.view, ctx.reply,
      [record, group, list = std::move(list), write = std::move(write)](
          storage::Reader& data, contract::ReplySink& reply, const Enough& enough) mutable {
        bool more = false;
        walk_list(StreamReader(data, record), group, list, [&](const StreamPending& pending) {
          more = enough();
          if (more) {
            list.range.first = pending.id;
            return false;
          }
          write(pending, reply);
          return --list.count > 0;
        });
        return more;
      });
}

}  // namespace ingot::commands

// Writing a range of sorted items at once, or streaming it once the sort is kept for the reply.
#include "src/commands/sorted_reply.h"

#include <string>
#include <utility>

#include "src/commands/element_reply.h"
#include "src/contract/thresholds.h"

namespace ingot::commands {

using contract::ReplySink;
using data::SpillSort;

namespace {

// Writes the items of the range until `enough()`; then the range begins behind them, and `*from` is
// the key of its first item.
template <typename Enough>
void write_some(storage::Reader& data, const SpillSort& items, std::string* from, ItemRange* range,
                const WriteItem& write, ReplySink& reply, const Enough& enough) {
  const auto each = [&](std::string_view key, std::string_view value) {
    if (range->first > 0) {
      --range->first;
      return true;
    }
    if (range->count == 0 || data.failed()) return false;
    if (enough()) {
      from->assign(key);
      return false;
    }
    write(data, key, value, reply);
    --range->count;
    return true;
  };
  const storage::Status status = items.walk(*from, each);
  if (!status.ok()) data.latch_error(status);
}

}  // namespace

void write_sorted(storage::Reader& data, const SpillSort& items, ItemRange range,
                  const WriteItem& write, ReplySink& reply) {
  std::string from;
  write_some(data, items, &from, &range, write, reply, [] { return false; });
}

void reply_sorted(contract::ReadContext& ctx, std::shared_ptr<SpillSort> items, ItemRange range,
                  WriteItem write) {
  reply_sorted({.data = ctx.data, .view = ctx.view, .reader = ctx.keys.data(), .reply = ctx.reply},
               std::move(items), range, std::move(write));
}

void reply_sorted(const SortedReply& to, std::shared_ptr<SpillSort> items, ItemRange range,
                  WriteItem write) {
  if (!to.view || (range.count <= contract::kHeldElements && !items->is_spilled())) {
    return write_sorted(to.reader, *items, range, write, to.reply);
  }
  const storage::Status status = items->keep_for_reply();
  if (!status.ok()) return to.reader.latch_error(status);
  stream_reply(to.data, to.view, to.reply,
               [items = std::move(items), range, write = std::move(write), from = std::string()](
                   storage::Reader& data, ReplySink& reply, const Enough& enough) mutable {
                 write_some(data, *items, &from, &range, write, reply, enough);
                 return range.count > 0;
               });
}

}  // namespace ingot::commands

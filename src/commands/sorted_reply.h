// Replies with items that were sorted first, however many they are: a few are written at once, many
// are streamed while the client takes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "src/contract/context.h"
#include "src/data/spill_sort.h"

namespace ingot::commands {

// Writes one item's part of the reply; `data` reads what the command reads. Runs later and on other
// threads, too: let it capture by value.
using WriteItem = std::function<void(storage::Reader& data, std::string_view key,
                                     std::string_view value, contract::ReplySink& reply)>;

struct ItemRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

// Where a reply is read from and written to. Without a view it is made at once.
struct SortedReply {
  data::Services& data;
  std::shared_ptr<const data::View> view;
  storage::Reader& reader;
  contract::ReplySink& reply;
};

// Behind the header that the caller has announced. `items` is finished; more than 512 of them have
// been gathered in the reader pool.
void reply_sorted(const SortedReply& to, std::shared_ptr<data::SpillSort> items, ItemRange range,
                  WriteItem write);
void reply_sorted(contract::ReadContext& ctx, std::shared_ptr<data::SpillSort> items,
                  ItemRange range, WriteItem write);
// The same, at once.
void write_sorted(storage::Reader& data, const data::SpillSort& items, ItemRange range,
                  const WriteItem& write, contract::ReplySink& reply);

}  // namespace ingot::commands

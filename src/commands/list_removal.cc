// What is left of a list, made beside the writer; and where elements stand, found beside it.
#include "src/commands/list_removal.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/types/list_builder.h"
#include "src/types/list_bytes.h"
#include "src/types/list_node.h"

namespace ingot::commands {

using types::BuiltValue;
using types::ListEnd;
using types::ListReader;
using types::Record;

namespace {

// Labels go to the writer as what was taken, in their order.
void note_label(data::SpillSort& taken, uint64_t label) {
  taken.add(types::item_of(label), {});
}

std::vector<uint64_t> noted_labels(types::KeyReader& keys, const data::SpillSort& taken) {
  std::vector<uint64_t> labels;
  const storage::Status status = taken.walk({}, [&](std::string_view item, std::string_view) {
    labels.push_back(types::label_of_item(item));
    return true;
  });
  if (!status.ok()) keys.data().latch_error(status);
  return labels;
}

// A dense list stays dense when all that goes stands at its ends.
bool only_at_ends(const types::ListBounds& bounds, const std::vector<uint64_t>& labels) {
  auto low = labels.begin();
  auto high = labels.end();
  for (uint64_t at = bounds.first; low != high && *low == at; at += types::kListStride) ++low;
  for (uint64_t at = bounds.last; low != high && *(high - 1) == at; at -= types::kListStride) {
    --high;
  }
  return low == high;
}

uint64_t magnitude(int64_t number) {
  return number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
}

// The list without the first `count` elements that equal one (from the end when negative, all for
// 0); or, when they are few and the writer can take them out, their labels alone.
BuiltValue without_matches(types::KeyReader& keys, const Record& record, int64_t count,
                           std::string_view element, const types::PutElement& put,
                           data::SpillSort& taken) {
  ListReader list(keys.data(), record);
  std::vector<uint64_t> few;
  uint64_t found = 0;
  uint64_t furthest = 0;  // label
  list.walk_placed(count < 0, [&](uint64_t label, std::string_view each) {
    if (each != element) return true;
    furthest = label;
    if (few.size() < contract::kRemovedSingly) few.push_back(label);
    return ++found != magnitude(count);
  });
  std::ranges::sort(few);
  const types::ListBounds& bounds = list.bounds();
  if (found == few.size() && (bounds.gapped || only_at_ends(bounds, few))) {
    for (const uint64_t label : few) note_label(taken, label);
    return {};
  }
  types::GappedListBuilder rest(put);
  list.walk_placed(false, [&](uint64_t label, std::string_view each) {
    const bool reached = count < 0 ? label >= furthest : label <= furthest;
    if (!reached || each != element) rest.add(label, each);
    return !keys.data().failed();
  });
  BuiltValue built = rest.finish();
  built.changes = found;
  return built;
}

// The list with the element beside the pivot; or, when the writer can put it there, the pivot's
// label alone.
BuiltValue with_insertion(types::KeyReader& keys, const Record& record, const Insertion& insertion,
                          const types::PutElement& put, data::SpillSort& taken) {
  ListReader list(keys.data(), record);
  std::optional<uint64_t> pivot;
  list.walk_placed(false, [&](uint64_t label, std::string_view each) {
    if (each == insertion.pivot) pivot = label;
    return !pivot;
  });
  if (!pivot) return {};
  const types::ListBounds& bounds = list.bounds();
  const bool at_end = *pivot == (insertion.before ? bounds.first : bounds.last);
  if (bounds.gapped || at_end) {
    note_label(taken, *pivot);
    return {};
  }
  // Between two labels of a dense list there is room.
  const uint64_t half = types::kListStride / 2;
  types::GappedListBuilder whole(put);
  list.walk_placed(false, [&](uint64_t label, std::string_view each) {
    if (label == *pivot && insertion.before) whole.add(label - half, insertion.element);
    whole.add(label, each);
    if (label == *pivot && !insertion.before) whole.add(label + half, insertion.element);
    return !keys.data().failed();
  });
  BuiltValue built = whole.finish();
  built.changes = 1;
  return built;
}

}  // namespace

bool is_large_pop(contract::WriteContext& ctx, const Record& record, ListEnd end, uint64_t count) {
  if (is_large_removal(ctx, record, count)) return true;
  if (count == 1 || !record.collection()) return false;
  ListReader list(ctx.keys.data(), record);
  const uint64_t first = end == ListEnd::kLeft ? 0 : list.length() - count;
  uint64_t left = count;
  uint64_t bytes = 0;
  list.walk(first, [&](std::string_view element) {
    bytes += element.size();
    return --left > 0 && bytes <= contract::kPoppedBytesByWriter;
  });
  return bytes > contract::kPoppedBytesByWriter;
}

std::shared_ptr<data::SpillSort> take_elements(contract::WriteContext& ctx, std::string_view key,
                                               const Record& before, ListEnd end, uint64_t count) {
  const auto take = [db = ctx.db, key, end, count,
                     inline_max_bytes = ctx.config.settings()->inline_max_bytes](
                        const data::Taking& here) -> std::optional<data::TakenCount> {
    types::ListWriter list(here.keys, db, key, &here.before, inline_max_bytes);
    std::string element;
    for (uint64_t i = 0; i < count; ++i) {
      list.pop(end, &element);
      here.taken.add(next_place(here.taken), element);
      if (here.is_too_much()) return std::nullopt;
    }
    return data::TakenCount{.count = count, .left = list.finish()};
  };
  const auto rest =
      leave_rest(ctx, key, before, count, take,
                 [end, count, inline_max_bytes = ctx.config.settings()->inline_max_bytes](
                     types::KeyReader& keys, const Record& record, const types::PutElement& put,
                     data::SpillSort& taken) {
                   ListReader list(keys.data(), record);
                   const uint64_t length = list.length();
                   const uint64_t first = end == ListEnd::kLeft ? 0 : length - count;
                   uint64_t left = count;
                   list.walk(first, [&](std::string_view element) {
                     taken.add(next_place(taken, end == ListEnd::kRight), element);
                     return --left > 0;
                   });
                   const uint64_t begin = end == ListEnd::kLeft ? count : 0;
                   return types::part_of_list(keys.data(), record, begin, begin + length - count,
                                              inline_max_bytes, put);
                 });
  return rest ? rest->taken : nullptr;
}

bool leave_elements(contract::WriteContext& ctx, std::string_view key, const Record& before,
                    uint64_t first, uint64_t end) {
  const uint64_t length = before.collection()->count;
  const uint64_t going = length - (end - first);
  const auto take = [db = ctx.db, key, first, going, behind = length - end,
                     inline_max_bytes = ctx.config.settings()->inline_max_bytes](
                        const data::Taking& here) -> std::optional<data::TakenCount> {
    types::ListWriter list(here.keys, db, key, &here.before, inline_max_bytes);
    for (uint64_t i = 0; i < behind + first; ++i) {
      list.pop(i < behind ? ListEnd::kRight : ListEnd::kLeft, nullptr);
      if (here.is_too_much()) return std::nullopt;
    }
    return data::TakenCount{.count = going, .left = list.finish()};
  };
  const auto rest = leave_rest(
      ctx, key, before, going, take,
      [first, end, inline_max_bytes = ctx.config.settings()->inline_max_bytes](
          types::KeyReader& keys, const Record& record, const types::PutElement& put,
          data::SpillSort&) {
        return types::part_of_list(keys.data(), record, first, end, inline_max_bytes, put);
      });
  return rest.has_value();
}

std::optional<Removed> remove_matches(contract::WriteContext& ctx, std::string_view key,
                                      const Record& before, int64_t count,
                                      std::string_view element) {
  const auto rest =
      leave_rest(ctx, key, before,
                 [count, element](types::KeyReader& keys, const Record& record,
                                  const types::PutElement& put, data::SpillSort& taken) {
                   return without_matches(keys, record, count, element, put, taken);
                 });
  if (!rest) return std::nullopt;
  if (rest->value.changes != 0) {
    return Removed{.count = rest->value.changes, .left = rest->value.size != 0};
  }
  const std::vector<uint64_t> labels = noted_labels(ctx.keys, *rest->taken);
  types::ListWriter list = list_writer(ctx, key, &before);
  list.remove_at(labels);
  return Removed{.count = labels.size(), .left = list.finish()};
}

std::optional<uint64_t> insert_element(contract::WriteContext& ctx, std::string_view key,
                                       const Record& before, const Insertion& insertion) {
  const auto rest = leave_rest(ctx, key, before,
                               [insertion](types::KeyReader& keys, const Record& record,
                                           const types::PutElement& put, data::SpillSort& taken) {
                                 return with_insertion(keys, record, insertion, put, taken);
                               });
  if (!rest) return std::nullopt;
  if (rest->value.changes != 0) return rest->value.size;
  const std::vector<uint64_t> labels = noted_labels(ctx.keys, *rest->taken);
  if (labels.empty()) return 0;
  types::ListWriter list = list_writer(ctx, key, &before);
  list.insert_at(insertion.before, labels.front(), insertion.element);
  list.finish();
  return list.length();
}

}  // namespace ingot::commands

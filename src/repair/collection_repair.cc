// Strings, lists, sets, hashes and sorted sets; of streams StreamRepair takes the elements.
#include "src/repair/collection_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "src/repair/stream_repair.h"
#include "src/types/hash_bytes.h"
#include "src/types/list_builder.h"
#include "src/types/list_bytes.h"
#include "src/types/list_node.h"
#include "src/types/member_table.h"
#include "src/types/sorted_set_builder.h"
#include "src/types/sorted_set_bytes.h"
#include "src/types/string_value.h"

namespace ingot::repair {

using storage::Space;
using storage::ValueType;

namespace {

constexpr size_t kIdBytes = 8;
constexpr size_t kHashBytes = 4;  // before a member
constexpr size_t kBatchBytes = 1 << 20;
constexpr size_t kRangesShown = 10;

// Numbers that were missed, as "3 to 7, 9".
class Gaps {
 public:
  void add(uint64_t first, uint64_t end) {
    if (first >= end || ++ranges_ > kRangesShown) return;
    text_ += text_.empty() ? "" : ", ";
    text_ += end - first == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, end - 1);
  }
  std::string text() const { return ranges_ > kRangesShown ? text_ + " and more" : text_; }

 private:
  std::string text_;
  size_t ranges_ = 0;
};

}  // namespace

CollectionRepair::CollectionRepair(storage::Salvage& salvage, const types::Record& record,
                                   const types::PutElement& put)
    : records_(salvage.records()),
      record_(record),
      put_(put),
      expected_(record.collection()->count) {
  const std::string prefix = storage::collection_begin(record.collection()->id);
  for (const storage::Loss& loss : salvage.losses()) {
    if (loss.touches(Space::kData, prefix)) losses_.push_back(&loss);
  }
  made_.value.metadata = record.metadata();
}

RepairedValue CollectionRepair::make() {
  switch (record_.type()) {
    case ValueType::kString:
      make_string();
      break;
    case ValueType::kList:
      make_list();
      break;
    case ValueType::kSet:
    case ValueType::kHash:
      make_members();
      break;
    case ValueType::kSortedSet:
      make_sorted_set();
      break;
    case ValueType::kStream: {
      StreamRepair stream(record_, put_);
      walk([&](std::string_view element, std::string_view value, uint64_t) {
        if (!stream.add(element, value)) ++unreadable_;
      });
      made_ = stream.finish();
      break;
    }
  }
  if (unreadable_ > 0) lose(fmt::format("{} of its elements are unreadable", unreadable_));
  if (older_ > 0) {
    lose(fmt::format("{} of its elements may be older than what stood there", older_));
  }
  return std::move(made_);
}

void CollectionRepair::walk(const Each& each) {
  const storage::CollectionId id = record_.collection()->id;
  records_.walk(Space::kData, storage::collection_begin(id), storage::collection_end(id),
                [&](std::string_view key, uint64_t sequence, std::string_view value) {
                  older_ += std::ranges::any_of(losses_, [&](const storage::Loss* loss) {
                    return loss->is_narrow && loss->concerns(Space::kData, key, sequence);
                  });
                  each(key.substr(kIdBytes), value, sequence);
                  return true;
                });
}

void CollectionRepair::finish(uint64_t size) {
  made_.value.size = size;
  made_.value.metadata.collection->count = size;
}

void CollectionRepair::lose_difference(uint64_t found, const std::string& where) {
  if (found < expected_) {
    lose(fmt::format("{} of its {} elements are lost{}", expected_ - found, expected_, where));
  } else if (found > expected_) {
    lose(fmt::format("it has {} elements more than it should, which had been removed",
                     found - expected_));
  }
}

// A chunk that is missing reads as zeros; whether it was ever there cannot be told.
void CollectionRepair::make_string() {
  const types::StringChunks cut = types::chunks_of(record_);
  const uint64_t chunks = (expected_ + cut.bytes - 1) / cut.bytes;
  uint64_t found = 0;
  uint64_t next = 0;
  Gaps gaps;
  walk([&](std::string_view element, std::string_view value, uint64_t) {
    std::string_view bytes;
    const bool readable = element.size() == 4 && cut.decode(value, &bytes);
    const uint64_t number = readable ? storage::read_be32(element) : chunks;
    if (number >= chunks) return void(++unreadable_);
    gaps.add(next * cut.bytes, number * cut.bytes);
    next = number + 1;
    ++found;
    put_(Space::kData, element, value);
  });
  gaps.add(next * cut.bytes, expected_);
  finish(expected_);
  made_.value.payload = record_.payload();
  if (found == 0) {
    made_.value.size = 0;
    lose("all of it is lost");
  } else if (found < chunks && !losses_.empty()) {
    lose(fmt::format("bytes {} are not there, and read as zeros: lost, or never written",
                     gaps.text()));
  }
}

void CollectionRepair::make_list() {
  types::ListBounds bounds;
  const bool bounded = types::decode_bounds(record_.payload(), &bounds);
  types::ListBuilder list(/*inline_max_bytes=*/0, put_);
  uint64_t found = 0;
  uint64_t next = 0;
  Gaps gaps;
  // By label. Where a node had been put apart, and its removal is lost, an element stands twice.
  struct Kept {
    std::string element;
    uint64_t sequence;
  };
  std::map<uint64_t, Kept> near;
  const auto add_before = [&](uint64_t label) {
    for (; !near.empty() && near.begin()->first < label; near.erase(near.begin())) {
      const uint64_t index = (near.begin()->first - bounds.first) / types::kListStride;
      gaps.add(next, index);
      next = index + 1;
      ++found;
      list.add(near.begin()->second.element);
    }
  };
  walk([&](std::string_view element, std::string_view value, uint64_t sequence) {
    types::ListElements record;
    if (element.size() != sizeof(uint64_t) ||
        !types::read_elements(storage::read_be64(element), value, &record)) {
      return void(++unreadable_);
    }
    // No node that is still to come reaches further back.
    add_before(storage::read_be64(element) - types::kBlockLabels);
    for (size_t i = 0; i < record.size; ++i) {
      const uint64_t label = record.label(i);
      if (bounded && (label < bounds.first || label > bounds.last)) continue;  // had been popped
      const auto [kept, is_first] =
          near.try_emplace(label, Kept{std::string(record.elements[i]), sequence});
      if (is_first || kept->second.sequence > sequence) continue;
      kept->second = {std::string(record.elements[i]), sequence};
    }
  });
  add_before(bounded ? bounds.last + 1 : std::numeric_limits<uint64_t>::max());
  gaps.add(next, expected_);
  // The labels of a dense list tell its indexes.
  const bool dense = bounded && !bounds.gapped;
  const std::string where = dense ? ": the indexes " + gaps.text() : std::string();
  types::BuiltValue built = list.finish();
  made_.value.payload = std::move(built.payload);
  finish(found);
  lose_difference(found, where);
}

void CollectionRepair::make_members() {
  const bool is_hash = record_.type() == ValueType::kHash;
  made_.value.metadata.element_expire_ms = 0;
  uint64_t found = 0;
  walk([&](std::string_view element, std::string_view value, uint64_t) {
    types::FieldValue field;
    if (element.size() < kHashBytes || value.empty() ||
        (is_hash && !types::decode_field_value(value, &field))) {
      return void(++unreadable_);
    }
    ++found;
    put_(Space::kData, element, value);
    if (field.expire_ms == 0) return;
    types::note_expiry(&made_.value.metadata, field.expire_ms);
    const std::string key =
        types::field_expiry_key(0, field.expire_ms, types::member_of_element(element));
    put_(Space::kOrder, std::string_view(key).substr(kIdBytes), {&storage::kPlainElement, 1});
  });
  finish(found);
  lose_difference(found);
}

// The members stand in the order of their hashes: the scratch engine sorts them.
void CollectionRepair::make_sorted_set() {
  storage::Engine& scratch = records_.engine();
  const std::string begin = storage::collection_begin(record_.collection()->id);
  const auto batch = scratch.new_batch();
  storage::Status status;
  const auto write = [&] {
    if (status.ok()) status = scratch.write(*batch, storage::Durability::kBuffered);
    batch->clear();
  };
  walk([&](std::string_view element, std::string_view value, uint64_t) {
    if (element.size() < kHashBytes || value.size() != 1 + types::kScoreBytes) {
      return void(++unreadable_);
    }
    const double score = std::bit_cast<double>(storage::read_le64(value.substr(1)));
    const bool marked = types::needs_mark(score);
    batch->put(Space::kOrder, begin + types::item_of(score, types::member_of_element(element)),
               marked ? "1" : "0");
    if (batch->bytes() > kBatchBytes) write();
  });
  write();

  types::SortedSetBuilder set({}, put_);
  set.expect(UINT64_MAX, 0);  // of a limit that was passed the record tells
  const auto cursor = scratch.new_cursor(
      Space::kOrder, {.lower = begin, .upper = storage::collection_end(record_.collection()->id)});
  uint64_t found = 0;
  for (cursor->seek(begin); cursor->valid(); cursor->next()) {
    const std::string_view item = cursor->key().substr(kIdBytes);
    set.add(item.substr(types::kScoreBytes), types::score_of(item, cursor->value() == "1"));
    ++found;
  }
  if (status.ok()) status = cursor->status();
  records_.note(std::move(status));
  types::BuiltValue built = set.finish();
  made_.value.payload = std::move(built.payload);
  finish(found);
  lose_difference(found);
}

}  // namespace ingot::repair

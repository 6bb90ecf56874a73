// Lists, sets, sorted sets, hashes and long strings, element by element.
#include "src/data/rdb_value.h"

#include <algorithm>
#include <bit>
#include <boost/unordered/unordered_flat_set.hpp>
#include <optional>

#include "src/data/seen_names.h"
#include "src/data/spill_sort.h"
#include "src/types/hash_builder.h"
#include "src/types/list_builder.h"
#include "src/types/member_table.h"
#include "src/types/rdb/rdb_listpack.h"
#include "src/types/rdb/rdb_lzf.h"
#include "src/types/set_builder.h"
#include "src/types/sorted_set_builder.h"
#include "src/types/sorted_set_bytes.h"
#include "src/types/string_value.h"

namespace ingot::data {

using types::BuiltValue;
using types::rdb::Input;
using types::rdb::ObjectType;

namespace {

types::PutElement put_into(const RdbPlace& place) {
  if (!place.kept) return [](storage::Space, std::string_view, std::string_view) {};
  return
      [&filling = place.filling](storage::Space space, std::string_view element,
                                 std::string_view record) { filling.put(space, element, record); };
}

// How many members a record of a hash, a set or a sorted set really has.
uint64_t distinct_members(types::KeyReader& keys, const types::Record& record) {
  uint64_t count = 0;
  if (record.collection()) {
    types::MemberTable(keys.data(), record.collection()->id)
        .walk([&](std::string_view, std::string_view) { return ++count, !keys.data().failed(); });
    return count;
  }
  boost::unordered_flat_set<std::string> members;
  const auto add = [&](std::string_view member, const auto&...) {
    members.emplace(member);
    return true;
  };
  switch (record.type()) {
    case storage::ValueType::kHash:
      types::HashReader(keys.data(), record, /*now_ms=*/0).walk(add);
      break;
    case storage::ValueType::kSet:
      types::SetReader(keys.data(), record).walk(add);
      break;
    default:
      types::SortedSetReader(keys.data(), record).walk(add);
  }
  return members.size();
}

// One that begins with the number of its pieces.
class CountedValue : public RdbValue {
 public:
  explicit CountedValue(const RdbPlace& place) : place_(place) {}

  bool take(Input& in) override {
    if (!begun_) {
      begun_ = read_head(in);
      count_ = left_;
      return begun_;
    }
    if (!take_piece(in)) return false;
    --left_;
    return true;
  }
  bool complete() const override { return begun_ && left_ == 0; }
  bool store() override { return store_built(place_, finish()); }
  bool is_sound() override {
    if (!may_repeat_) return true;
    place_.filling.write();
    types::KeyWriter& keys = place_.filling.keys();
    types::Record record;
    return !keys.peek(place_.db, place_.key, &record) || distinct_members(keys, record) == count_;
  }

 protected:
  // Each member once; Redis takes a file for damaged where one comes twice. To count what stands
  // there at the end costs no more than to tell very many apart.
  void note_member(std::string_view member) {
    may_repeat_ = may_repeat_ || count_ > SeenNames::kSureNamesMax;
    if (may_repeat_ || !place_.kept) return;
    if (!seen_) seen_.emplace(count_);
    may_repeat_ = seen_->note(member);
  }
  uint64_t count() const { return count_; }
  virtual bool read_head(Input& in) { return in.length(&left_); }
  virtual bool take_piece(Input& in) = 0;
  virtual BuiltValue finish() = 0;

  const RdbPlace& place_;
  uint64_t left_ = 0;

 private:
  bool begun_ = false;
  uint64_t count_ = 0;
  std::optional<SeenNames> seen_;
  bool may_repeat_ = false;
};

class ListValue : public CountedValue {
 public:
  ListValue(ObjectType type, const RdbPlace& place)
      : CountedValue(place),
        type_(type),
        builder_(place.limits.set.inline_max_bytes, put_into(place)) {}

 private:
  bool take_piece(Input& in) override {
    uint64_t form = types::rdb::kPackedNode;
    std::string piece;
    if (type_ == ObjectType::kListQuicklist2 && !in.length(&form)) return false;
    if (!in.string(&piece)) return false;
    if (type_ == ObjectType::kList || form == types::rdb::kPlainNode) {
      builder_.add(piece);
      return true;
    }
    types::rdb::Items items;
    const auto unpack =
        type_ == ObjectType::kListQuicklist2 ? types::rdb::read_listpack : types::rdb::read_ziplist;
    if (form != types::rdb::kPackedNode || !unpack(piece, &items, SIZE_MAX)) return false;
    for (const std::string& item : items) builder_.add(item);
    return true;
  }
  BuiltValue finish() override { return builder_.finish(); }

  const ObjectType type_;
  types::ListBuilder builder_;
};

class SetValue : public CountedValue {
 public:
  explicit SetValue(const RdbPlace& place)
      : CountedValue(place), builder_(place.limits.set, put_into(place)) {}

 private:
  bool take_piece(Input& in) override {
    std::string member;
    if (!in.string(&member)) return false;
    note_member(member);
    builder_.add(member);
    return true;
  }
  BuiltValue finish() override { return builder_.finish(); }

  types::SetBuilder builder_;
};

// Members stand in any order in an RDB file; that of versions from 5 on is falling.
class SortedSetValue : public CountedValue {
 public:
  SortedSetValue(ObjectType type, const RdbPlace& place)
      : CountedValue(place), type_(type), sorted_(place.services) {}

 private:
  bool take_piece(Input& in) override {
    std::string member;
    double score;
    if (!in.string(&member) || !types::rdb::read_score(type_, in, &score)) return false;
    if (!place_.kept) return true;
    note_member(member);
    longest_ = std::max(longest_, member.size());
    std::string bits;
    types::rdb::append_le(&bits, std::bit_cast<uint64_t>(score), sizeof(score));
    sorted_.add(types::item_of(score, member), bits);
    return true;
  }
  BuiltValue finish() override {
    types::SortedSetBuilder builder(place_.limits.sorted_set, put_into(place_));
    builder.expect(count(), longest_);
    storage::Status status = sorted_.finish();
    // What comes twice with the same score has no place in the order: is_sound() finds it.
    std::string before;
    if (status.ok()) {
      status = sorted_.walk({}, [&](std::string_view item, std::string_view bits) {
        Input in(bits);
        uint64_t score = 0;
        if (!in.le64(&score) || item == before) return false;
        before = item;
        builder.add(item.substr(types::kScoreBytes), std::bit_cast<double>(score));
        place_.filling.write_if_much();
        return place_.filling.status().ok();
      });
    }
    if (!status.ok()) place_.filling.fail(status);
    return builder.finish();
  }

  const ObjectType type_;
  SpillSort sorted_;
  size_t longest_ = 0;
};

class HashValue : public CountedValue {
 public:
  HashValue(ObjectType type, const RdbPlace& place)
      : CountedValue(place), type_(type), builder_(place.limits.hash, put_into(place)) {}

 private:
  bool expires() const { return type_ != ObjectType::kHash; }

  bool read_head(Input& in) override {
    return (type_ != ObjectType::kHashTimes || in.le64(&first_ms_)) && in.length(&left_);
  }
  bool take_piece(Input& in) override {
    uint64_t time = 0;
    std::string field, value;
    if ((expires() && !in.length(&time)) || !in.string(&field) || !in.string(&value)) return false;
    // Told as the distance from the first one, and 1 more than that.
    if (type_ == ObjectType::kHashTimes && time != 0) time += first_ms_ - 1;
    if (time > INT64_MAX) return false;
    note_member(field);
    builder_.add(field, {.bytes = value, .expire_ms = static_cast<int64_t>(time)});
    return true;
  }
  BuiltValue finish() override { return builder_.finish(); }

  const ObjectType type_;
  uint64_t first_ms_ = 0;
  types::HashBuilder builder_;
};

class LongString : public RdbValue {
 public:
  LongString(uint64_t bytes, const RdbPlace& place)
      : place_(place), put_(put_into(place)), bytes_(bytes) {}

  bool take(Input& in) override {
    std::string_view piece;
    if (!in.take(std::min<uint64_t>(bytes_ - at_, storage::kStringChunkBytes), &piece)) {
      return false;
    }
    put(piece);
    return true;
  }
  bool complete() const override { return at_ == bytes_; }
  bool store() override {
    return store_built(place_,
                       {.metadata = {.type = storage::ValueType::kString,
                                     .limit_passed = true,
                                     .collection = storage::Metadata::Collection{.count = bytes_}},
                        .payload = {},
                        .size = bytes_,
                        .error = {}});
  }

 protected:
  // All but the last one are whole chunks.
  void put(std::string_view piece) {
    types::put_chunk(put_, static_cast<uint32_t>(at_ / storage::kStringChunkBytes), piece);
    at_ += piece.size();
  }
  uint64_t left() const { return bytes_ - at_; }

 private:
  const RdbPlace& place_;
  const types::PutElement put_;
  const uint64_t bytes_;
  uint64_t at_ = 0;
};

class CompressedString : public LongString {
 public:
  CompressedString(uint64_t packed, uint64_t bytes, const RdbPlace& place)
      : LongString(bytes, place), packed_left_(packed) {}

  // As many whole pieces as make a chunk, or are there.
  bool take(Input& in) override {
    using types::rdb::LzfStep;
    const std::string_view packed = in.rest().substr(0, packed_left_);
    size_t at = 0;
    LzfStep step = LzfStep::kTaken;
    while (at < packed.size() && waiting() < storage::kStringChunkBytes) {
      step = types::rdb::lzf_step(packed, &at, left() - waiting(), &unpacked_);
      if (step != LzfStep::kTaken) break;
    }
    if (step == LzfStep::kDamaged || (at == 0 && packed.size() == packed_left_)) return false;
    std::string_view taken;
    if (!in.take(at == 0 ? packed.size() + 1 : at, &taken)) return false;
    packed_left_ -= at;
    const bool is_last = packed_left_ == 0;
    if (is_last && waiting() != left()) return false;
    while (waiting() >= storage::kStringChunkBytes || (is_last && waiting() > 0)) put_chunk();
    return true;
  }
  bool complete() const override { return packed_left_ == 0; }

 private:
  uint64_t waiting() const { return unpacked_.size() - put_; }
  void put_chunk() {
    const std::string_view chunk =
        std::string_view(unpacked_).substr(put_, storage::kStringChunkBytes);
    put(chunk);
    put_ += chunk.size();
    // Later pieces point back at the last bytes.
    const size_t passed = put_ - std::min(put_, types::rdb::kLzfOffsetMax);
    unpacked_.erase(0, passed);
    put_ -= passed;
  }

  uint64_t packed_left_;
  std::string unpacked_;
  size_t put_ = 0;  // of it
};

}  // namespace

bool store_built(const RdbPlace& place, const BuiltValue& value) {
  if (value.size == 0) return false;
  storage::Metadata record = place.filling.record_of(value);
  record.expire_ms = place.expire_ms;
  place.filling.keys().store(place.db, place.key, nullptr, record, types::Touch::kQuiet);
  return true;
}

std::unique_ptr<RdbValue> begin_value(ObjectType type, const RdbPlace& place) {
  switch (type) {
    case ObjectType::kList:
    case ObjectType::kListQuicklist:
    case ObjectType::kListQuicklist2:
      return std::make_unique<ListValue>(type, place);
    case ObjectType::kSet:
      return std::make_unique<SetValue>(place);
    case ObjectType::kSortedSetText:
    case ObjectType::kSortedSet:
      return std::make_unique<SortedSetValue>(type, place);
    case ObjectType::kHash:
    case ObjectType::kHashTimes:
    case ObjectType::kHashTimesEarly:
      return std::make_unique<HashValue>(type, place);
    case ObjectType::kStream:
    case ObjectType::kStream2:
    case ObjectType::kStream3:
      return begin_stream(type, {.keys = place.filling.keys(),
                                 .inline_max_bytes = place.limits.set.inline_max_bytes,
                                 .db = place.db,
                                 .key = place.key,
                                 .expire_ms = place.expire_ms,
                                 .kept = place.kept});
    default:
      return nullptr;
  }
}

std::unique_ptr<RdbValue> begin_long_string(uint64_t bytes, const RdbPlace& place) {
  return std::make_unique<LongString>(bytes, place);
}

std::unique_ptr<RdbValue> begin_compressed_string(uint64_t packed, uint64_t bytes,
                                                  const RdbPlace& place) {
  return std::make_unique<CompressedString>(packed, bytes, place);
}

}  // namespace ingot::data

// Strings, lists, sets, sorted sets and hashes, from one place to the next.
#include "src/data/rdb_pieces.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "src/types/hash_value.h"
#include "src/types/list_value.h"
#include "src/types/member_table.h"
#include "src/types/rdb/rdb_bytes.h"
#include "src/types/sorted_set_value.h"
#include "src/types/string_value.h"

namespace ingot::data {

using storage::Space;
using types::rdb::append_length;
using types::rdb::append_string;
using types::rdb::ObjectType;

namespace {

class StringPieces : public RdbPieces {
 public:
  explicit StringPieces(const RdbSource& from)
      : from_(from), bytes_(types::string_length(from.record)) {}

  ObjectType type() const override { return ObjectType::kString; }
  bool next(std::string* out, size_t bytes_max) override {
    if (at_ == 0) append_length(out, bytes_);
    while (at_ < bytes_ && out->size() < bytes_max && !from_.data.failed()) {
      const uint64_t bytes = std::min<uint64_t>(storage::kStringChunkBytes, bytes_ - at_);
      types::read_string(from_.data, from_.record, at_, bytes, out);
      at_ += bytes;
    }
    return at_ < bytes_;
  }

 private:
  const RdbSource from_;
  const uint64_t bytes_;
  uint64_t at_ = 0;
};

// Elements that are found by their number.
class RankedPieces : public RdbPieces {
 public:
  RankedPieces(const RdbSource& from, uint64_t count) : from_(from), count_(count) {}

  bool next(std::string* out, size_t bytes_max) override {
    if (at_ == 0) append_length(out, count_);
    const uint64_t begin = at_;
    walk_from(at_, [&](std::string_view element, double score) {
      append_string(out, element, from_.options.compress);
      append_score(out, score);
      ++at_;
      return out->size() < bytes_max && !from_.data.failed();
    });
    if (at_ == begin && at_ < count_) {
      from_.data.latch_error({storage::Status::Code::kCorruption,
                              "a collection has fewer elements than its record says"});
    }
    return at_ < count_;
  }

 protected:
  using Each = std::function<bool(std::string_view element, double score)>;
  virtual void walk_from(uint64_t at, const Each& each) = 0;
  virtual void append_score(std::string* /*out*/, double /*score*/) {}

  const RdbSource from_;
  const uint64_t count_;

 private:
  uint64_t at_ = 0;
};

// Not as nodes of listpacks, whose number nobody knows: Redis packs the elements when it loads
// them.
class ListPieces : public RankedPieces {
 public:
  explicit ListPieces(const RdbSource& from)
      : RankedPieces(from, from.record.collection()->count), list_(from.data, from.record) {}
  ObjectType type() const override { return ObjectType::kList; }

 private:
  void walk_from(uint64_t at, const Each& each) override {
    list_.walk(at, [&](std::string_view element) { return each(element, 0); });
  }
  types::ListReader list_;
};

// From the highest member on, as Redis does: it then puts each one in front of the others.
class SortedSetPieces : public RankedPieces {
 public:
  explicit SortedSetPieces(const RdbSource& from)
      : RankedPieces(from, from.record.collection()->count), set_(from.data, from.record) {}
  ObjectType type() const override { return ObjectType::kSortedSet; }

 private:
  void walk_from(uint64_t at, const Each& each) override {
    set_.walk({.first = 0, .end = count_ - at}, /*reverse=*/true, each);
  }
  void append_score(std::string* out, double score) override {
    types::rdb::append_le(out, std::bit_cast<uint64_t>(score), sizeof(score));
  }
  types::SortedSetReader set_;
};

// Elements of a member table, in its order.
class TablePieces : public RdbPieces {
 public:
  TablePieces(const RdbSource& from, uint64_t count)
      : from_(from),
        count_(count),
        begin_(storage::collection_begin(from.record.collection()->id)),
        end_(storage::collection_end(from.record.collection()->id)) {}

  bool next(std::string* out, size_t bytes_max) override {
    if (last_.empty()) append_head(out);
    const auto at = from_.data.cursor(Space::kData, begin_, end_);
    at->seek(last_.empty() ? begin_ : last_);
    if (!last_.empty() && at->valid() && at->key() == last_) at->next();
    for (; at->valid() && out->size() < bytes_max && !from_.data.failed(); at->next()) {
      if (append_element(types::member_of(at->key()), at->value(), out)) ++told_;
      last_ = at->key();
    }
    from_.data.check(*at);
    if (at->valid()) return true;
    if (told_ != count_) {
      from_.data.latch_error({storage::Status::Code::kCorruption,
                              "a collection has other elements than its record says"});
    }
    return false;
  }

 protected:
  virtual void append_head(std::string* out) { append_length(out, count_); }
  // False: it is left out.
  virtual bool append_element(std::string_view member, std::string_view stored,
                              std::string* out) = 0;

  const RdbSource from_;
  const uint64_t count_;

 private:
  const std::string begin_, end_;
  std::string last_;  // the key of the last element that was told
  uint64_t told_ = 0;
};

class SetPieces : public TablePieces {
 public:
  explicit SetPieces(const RdbSource& from) : TablePieces(from, from.record.collection()->count) {}
  ObjectType type() const override { return ObjectType::kSet; }

 private:
  bool append_element(std::string_view member, std::string_view, std::string* out) override {
    append_string(out, member, from_.options.compress);
    return true;
  }
};

class HashPieces : public TablePieces {
 public:
  explicit HashPieces(const RdbSource& from)
      : TablePieces(from, types::HashReader(from.data, from.record, from.now_ms).length()) {}
  ObjectType type() const override { return ObjectType::kHash; }

 private:
  bool append_element(std::string_view field, std::string_view stored, std::string* out) override {
    types::FieldValue value;
    if (!types::decode_field_value(stored, &value)) return false;
    if (!value.is_alive(from_.now_ms)) return false;
    append_string(out, field, from_.options.compress);
    append_string(out, value.bytes, from_.options.compress);
    return true;
  }
};

// One field of a hash in the form of Redis 7.4, which tells when it expires.
void append_timed_field(const RdbSource& from, std::string_view field,
                        const types::FieldValue& value, std::string* out) {
  const int64_t first_ms = from.record.element_expire_ms();
  append_length(out,
                value.expire_ms == 0 ? 0 : static_cast<uint64_t>(value.expire_ms - first_ms + 1));
  append_string(out, field, from.options.compress);
  append_string(out, value.bytes, from.options.compress);
}

void append_timed_head(const RdbSource& from, uint64_t count, std::string* out) {
  types::rdb::append_le(out, static_cast<uint64_t>(from.record.element_expire_ms()), 8);
  append_length(out, count);
}

class TimedHashPieces : public TablePieces {
 public:
  explicit TimedHashPieces(const RdbSource& from)
      : TablePieces(from, from.record.collection()->count) {}
  ObjectType type() const override { return ObjectType::kHashTimes; }

 private:
  void append_head(std::string* out) override { append_timed_head(from_, count_, out); }
  bool append_element(std::string_view field, std::string_view stored, std::string* out) override {
    types::FieldValue value;
    if (!types::decode_field_value(stored, &value)) return false;
    append_timed_field(from_, field, value, out);
    return true;
  }
};

class SmallTimedHash : public RdbPieces {
 public:
  explicit SmallTimedHash(const RdbSource& from) : from_(from) {}
  ObjectType type() const override { return ObjectType::kHashTimes; }

  bool next(std::string* out, size_t) override {
    // At the beginning of time nothing has expired.
    types::HashReader fields(from_.data, from_.record, /*now_ms=*/0);
    append_timed_head(from_, fields.length(), out);
    fields.walk([&](std::string_view field, const types::FieldValue& value) {
      append_timed_field(from_, field, value, out);
      return true;
    });
    return false;
  }

 private:
  const RdbSource from_;
};

std::unique_ptr<RdbPieces> begin_hash(const RdbSource& from) {
  const bool timed = from.tells_expiry && from.record.element_expire_ms() != 0;
  if (!timed) return std::make_unique<HashPieces>(from);
  if (!from.record.collection()) return std::make_unique<SmallTimedHash>(from);
  return std::make_unique<TimedHashPieces>(from);
}

}  // namespace

std::unique_ptr<RdbPieces> begin_pieces(const RdbSource& from) {
  switch (from.record.type()) {
    case storage::ValueType::kString:
      return std::make_unique<StringPieces>(from);
    case storage::ValueType::kList:
      return std::make_unique<ListPieces>(from);
    case storage::ValueType::kSet:
      return std::make_unique<SetPieces>(from);
    case storage::ValueType::kSortedSet:
      return std::make_unique<SortedSetPieces>(from);
    case storage::ValueType::kHash:
      return begin_hash(from);
    case storage::ValueType::kStream:
      return begin_stream_pieces(from);
  }
  return nullptr;
}

}  // namespace ingot::data

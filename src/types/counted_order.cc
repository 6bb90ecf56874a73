// Two levels of counted buckets; see counted_order.h.
#include "src/types/counted_order.h"

#include <algorithm>
#include <utility>

namespace ingot::types {

using storage::Space;
using storage::Status;

namespace {

constexpr char kLeaf = 1;
constexpr char kUpper = 2;
// A look-up walks the upper buckets, the leaves of one and the elements of one leaf: with a
// million elements some 160 + 100 + 50 steps.
constexpr uint64_t kLeafMax = 128;
constexpr uint64_t kLeafMin = 16;
constexpr uint64_t kUpperMax = 128 * 96;
constexpr size_t kBucketPrefix = sizeof(storage::CollectionId) + 1;

std::string turned(std::string_view item) {
  std::string out;
  out.reserve(item.size() + 4);
  for (const char byte : item) {
    out.push_back(static_cast<char>(~byte));
    if (byte == 0) out.push_back(static_cast<char>(~1));
  }
  return out.append("\xff\xff");
}

// Without a check, because only turned() makes what is read here.
std::string turned_back(std::string_view bytes) {
  std::string item;
  for (size_t i = 0; i + 2 < bytes.size(); ++i) {
    item.push_back(static_cast<char>(~bytes[i]));
    if (bytes[i] == '\xff') ++i;
  }
  return item;
}

}  // namespace

CountedOrder::CountedOrder(storage::Reader& data, storage::CollectionId id, ElementRange elements)
    : data_(data), id_(id), elements_(std::move(elements)) {}

std::string CountedOrder::level_begin(char level) const {
  std::string key = storage::collection_begin(id_);
  key.push_back(level);
  return key;
}

std::string CountedOrder::bucket_key(char level, std::string_view item) const {
  return level_begin(level) + turned(item);
}

storage::Cursor& CountedOrder::buckets() {
  if (!buckets_) {
    buckets_ = data_.cursor(Space::kOrder, level_begin(kLeaf), level_begin(kUpper + 1));
  }
  return *buckets_;
}

bool CountedOrder::on_level(char level) const {
  return buckets_->valid() && buckets_->key()[kBucketPrefix - 1] == level;
}

std::unique_ptr<storage::Cursor> CountedOrder::elements() {
  std::string end = elements_.prefix;
  // The next prefix of the same length.
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) ++end.back();
  return data_.cursor(elements_.space, elements_.prefix, end);
}

CountedOrder::Bucket CountedOrder::read() {
  if (buckets_->value().size() != sizeof(uint64_t)) {
    data_.latch_error(Status(Status::Code::kCorruption, "unreadable order record"));
    return {};
  }
  return {.item = turned_back(buckets_->key().substr(kBucketPrefix)),
          .count = storage::read_le64(buckets_->value())};
}

std::optional<CountedOrder::Bucket> CountedOrder::bucket_of(char level, std::string_view item) {
  buckets().seek(bucket_key(level, item));
  std::optional<Bucket> found;
  if (on_level(level)) found = read();
  data_.check(*buckets_);
  return found;
}

std::optional<CountedOrder::Bucket> CountedOrder::bucket_behind(char level, std::string_view item) {
  const std::string key = bucket_key(level, item);
  buckets().seek(key);
  buckets_->valid() ? buckets_->prev() : buckets_->seek_for_prev(key);
  std::optional<Bucket> found;
  if (on_level(level)) found = read();
  data_.check(*buckets_);
  return found;
}

std::vector<CountedOrder::Bucket> CountedOrder::buckets_down(char level, std::string_view begin,
                                                             const std::string* end) {
  std::vector<Bucket> found;
  const std::string last = bucket_key(level, begin);
  storage::Cursor& at = buckets();
  for (at.seek(end != nullptr ? bucket_key(level, *end) : level_begin(level));
       on_level(level) && at.key() <= last; at.next()) {
    Bucket bucket = read();
    if (end == nullptr || bucket.item != *end) found.push_back(std::move(bucket));
  }
  data_.check(at);
  return found;
}

uint64_t CountedOrder::rank(std::string_view item) {
  uint64_t before = 0;
  std::string begin;  // of the bucket that the item falls into
  for (const char level : {kUpper, kLeaf}) {
    const std::string last = bucket_key(level, begin);
    storage::Cursor& at = buckets();
    bool own = true;
    for (at.seek(bucket_key(level, item)); on_level(level) && at.key() <= last; at.next()) {
      Bucket bucket = read();
      if (own) {
        begin = std::move(bucket.item);
      } else {
        before += bucket.count;
      }
      own = false;
    }
    data_.check(at);
  }
  const auto at = elements();
  for (at->seek(elements_.prefix + std::max(begin, elements_.low)); at->valid(); at->next()) {
    if (at->key().substr(elements_.prefix.size()) >= item) break;
    ++before;
  }
  data_.check(*at);
  return before;
}

std::unique_ptr<storage::Cursor> CountedOrder::at(uint64_t rank) {
  std::string begin;
  std::optional<std::string> end;
  for (const char level : {kUpper, kLeaf}) {
    const auto found = buckets_down(level, begin, end ? &*end : nullptr);
    auto bucket = found.rbegin();
    for (; bucket != found.rend() && rank >= bucket->count; ++bucket) rank -= bucket->count;
    if (bucket == found.rend()) return elements();
    begin = bucket->item;
    if (std::next(bucket) != found.rend()) end = std::next(bucket)->item;
  }
  auto at = elements();
  for (at->seek(elements_.prefix + std::max(begin, elements_.low)); at->valid() && rank > 0;
       at->next())
    --rank;
  return at;
}

void CountedOrderWriter::put(char level, const Bucket& bucket) {
  std::string count;
  storage::append_le64(&count, bucket.count);
  overlay_.put(Space::kOrder, bucket_key(level, bucket.item), count);
}

void CountedOrderWriter::erase(char level, std::string_view item) {
  overlay_.remove(Space::kOrder, bucket_key(level, item));
}

void CountedOrderWriter::added(std::string_view item) {
  Bucket leaf = bucket_of(kLeaf, item).value_or(Bucket{});
  Bucket upper = bucket_of(kUpper, item).value_or(Bucket{});
  ++leaf.count;
  ++upper.count;
  put(kLeaf, leaf);
  put(kUpper, upper);
  if (leaf.count > kLeafMax) split_leaf(leaf);
  if (upper.count > kUpperMax) split_upper(upper);
}

void CountedOrderWriter::split_leaf(const Bucket& leaf) {
  const uint64_t half = leaf.count / 2;
  const auto at = elements();
  at->seek(elements_.prefix + std::max(leaf.item, elements_.low));
  for (uint64_t i = 0; i < half && at->valid(); ++i) at->next();
  if (at->valid()) {
    put(kLeaf, {.item = std::string(at->key().substr(elements_.prefix.size())),
                .count = leaf.count - half});
    put(kLeaf, {.item = leaf.item, .count = half});
  }
  data_.check(*at);
}

// Where a leaf begins, so that each leaf lies in one upper bucket.
void CountedOrderWriter::split_upper(const Bucket& upper) {
  const auto next = bucket_behind(kUpper, upper.item);
  uint64_t second = 0;
  for (const Bucket& leaf : buckets_down(kLeaf, upper.item, next ? &next->item : nullptr)) {
    second += leaf.count;
    if (second < upper.count / 2) continue;
    if (leaf.item == upper.item || second >= upper.count) return;
    put(kUpper, {.item = leaf.item, .count = second});
    put(kUpper, {.item = upper.item, .count = upper.count - second});
    return;
  }
}

void CountedOrderWriter::removed(std::string_view item) {
  std::optional<Bucket> leaf = bucket_of(kLeaf, item);
  std::optional<Bucket> upper = bucket_of(kUpper, item);
  if (!leaf || !upper || leaf->count == 0 || upper->count == 0) {
    return data_.latch_error(Status(Status::Code::kCorruption, "an order count is too low"));
  }
  --leaf->count;
  --upper->count;
  put(kLeaf, *leaf);
  put(kUpper, *upper);
  if (leaf->count < kLeafMin) shrink(std::move(*leaf), std::move(*upper));
}

// The first bucket of each level stays, with whatever count.
void CountedOrderWriter::shrink(Bucket leaf, Bucket upper) {
  const std::optional<Bucket> next = bucket_behind(kLeaf, leaf.item);
  if (!next) return;
  const bool same_upper = bucket_of(kUpper, next->item).value_or(upper).item == upper.item;
  if (!same_upper) {
    // An empty upper bucket has come down to one leaf: each that emptied took in the next.
    if (upper.count > 0 || upper.item.empty() || leaf.item != upper.item) return;
    erase(kUpper, upper.item);
    erase(kLeaf, leaf.item);
    return;
  }
  if (leaf.count > 0 && leaf.count + next->count > kLeafMax / 2) return;
  erase(kLeaf, next->item);
  put(kLeaf, {.item = leaf.item, .count = leaf.count + next->count});
}

void CountedOrderWriter::build() {
  const auto at = elements();
  Bucket leaf;
  Bucket upper;
  for (at->seek(elements_.prefix); at->valid(); at->next()) {
    const std::string_view item = at->key().substr(elements_.prefix.size());
    if (leaf.count == kLeafMax / 2) {
      put(kLeaf, leaf);
      leaf = {.item = std::string(item)};
      if (upper.count >= kUpperMax / 2) {
        put(kUpper, upper);
        upper = {.item = std::string(item)};
      }
    }
    ++leaf.count;
    ++upper.count;
  }
  data_.check(*at);
  put(kLeaf, leaf);
  put(kUpper, upper);
}

}  // namespace ingot::types

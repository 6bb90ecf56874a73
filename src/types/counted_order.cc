// Two levels of counted buckets; see counted_order.h.
#include "src/types/counted_order.h"

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

}  // namespace

CountedOrder::CountedOrder(storage::Reader& data, storage::CollectionId id, ElementRange elements)
    : data_(data), id_(id), elements_(std::move(elements)) {}

std::string CountedOrder::bucket_key(char level, std::string_view item) const {
  std::string key = storage::collection_begin(id_);
  key.push_back(level);
  key.append(item);
  return key;
}

std::unique_ptr<storage::Cursor> CountedOrder::buckets(char level) {
  return data_.cursor(Space::kOrder, bucket_key(level, {}),
                      bucket_key(static_cast<char>(level + 1), {}));
}

std::unique_ptr<storage::Cursor> CountedOrder::elements() {
  std::string end = elements_.prefix;
  // The next prefix of the same length.
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) ++end.back();
  return data_.cursor(elements_.space, elements_.prefix, end);
}

CountedOrder::Bucket CountedOrder::read(const storage::Cursor& at) const {
  if (at.value().size() != sizeof(uint64_t)) {
    data_.latch_error(Status(Status::Code::kCorruption, "unreadable order record"));
    return {};
  }
  return {.item = std::string(at.key().substr(kBucketPrefix)),
          .count = storage::read_le64(at.value())};
}

std::optional<CountedOrder::Bucket> CountedOrder::bucket_of(char level, std::string_view item) {
  const auto at = buckets(level);
  at->seek_for_prev(bucket_key(level, item));
  std::optional<Bucket> found;
  if (at->valid()) found = read(*at);
  data_.check(*at);
  return found;
}

std::optional<CountedOrder::Bucket> CountedOrder::bucket_behind(char level, std::string_view item) {
  const auto at = buckets(level);
  at->seek(bucket_key(level, item) + '\0');
  std::optional<Bucket> found;
  if (at->valid()) found = read(*at);
  data_.check(*at);
  return found;
}

uint64_t CountedOrder::rank(std::string_view item) {
  uint64_t before = 0;
  std::string begin;  // of the last bucket that begins at or before the item
  for (const char level : {kUpper, kLeaf}) {
    const auto at = buckets(level);
    uint64_t last = 0;
    for (at->seek(bucket_key(level, begin)); at->valid(); at->next()) {
      Bucket bucket = read(*at);
      if (bucket.item > item) break;
      before += std::exchange(last, bucket.count);
      begin = std::move(bucket.item);
    }
    data_.check(*at);
  }
  const auto at = elements();
  for (at->seek(elements_.prefix + begin); at->valid(); at->next()) {
    if (at->key().substr(elements_.prefix.size()) >= item) break;
    ++before;
  }
  data_.check(*at);
  return before;
}

std::unique_ptr<storage::Cursor> CountedOrder::at(uint64_t rank) {
  std::string begin;
  for (const char level : {kUpper, kLeaf}) {
    const auto at = buckets(level);
    bool inside = false;
    for (at->seek(bucket_key(level, begin)); at->valid() && !inside; at->next()) {
      Bucket bucket = read(*at);
      begin = std::move(bucket.item);
      inside = rank < bucket.count;
      if (!inside) rank -= bucket.count;
    }
    data_.check(*at);
    if (!inside) return elements();
  }
  auto at = elements();
  for (at->seek(elements_.prefix + begin); at->valid() && rank > 0; at->next()) --rank;
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
  at->seek(elements_.prefix + leaf.item);
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
  const auto at = buckets(kLeaf);
  uint64_t first = 0;
  std::string border;
  for (at->seek(bucket_key(kLeaf, upper.item)); at->valid(); at->next()) {
    const Bucket leaf = read(*at);
    if (first >= upper.count / 2) {
      border = leaf.item;
      break;
    }
    first += leaf.count;
  }
  data_.check(*at);
  if (border.empty() || first >= upper.count) return;
  put(kUpper, {.item = border, .count = upper.count - first});
  put(kUpper, {.item = upper.item, .count = first});
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

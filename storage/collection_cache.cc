// Images as arrays with a cursor over them, and second-chance eviction in shards.
#include "storage/collection_cache.h"

#include <algorithm>
#include <ranges>

namespace ingot::storage {
namespace {

// What an entry costs besides its image: its places in map and list, the allocator's rounding.
constexpr uint64_t kEntryBytes = 192;
// A read of the engine costs as much as adding so many elements to an image.
constexpr uint64_t kElementsPerRead = 16;
constexpr unsigned kFailuresMax = 20;

class ImageCursor : public Cursor {
 public:
  ImageCursor(std::shared_ptr<const CollectionImage> image, std::string_view lower,
              std::string_view upper)
      : image_(std::move(image)),
        begin_(image_->find(lower)),
        end_(upper.empty() ? image_->size() : std::max(begin_, image_->find(upper))),
        at_(end_) {}

  bool valid() const override { return at_ >= begin_ && at_ < end_; }
  void seek(std::string_view key) override { at_ = std::max(begin_, image_->find(key)); }
  void seek_for_prev(std::string_view key) override {
    at_ = std::min(end_, image_->find(key));
    if (at_ == end_ || image_->key(at_) != key) --at_;  // below 0 it is beyond the end
  }
  void next() override { ++at_; }
  void prev() override { --at_; }
  std::string_view key() const override { return image_->key(at_); }
  std::string_view value() const override { return image_->value(at_); }
  Lookup outcome() const override { return Lookup::kFound; }
  Status status() const override { return {}; }
  std::optional<size_t> size() const override { return end_ - begin_; }
  void go(size_t number) override { at_ = begin_ + number; }

 private:
  const std::shared_ptr<const CollectionImage> image_;
  const size_t begin_;
  const size_t end_;
  size_t at_;
};

}  // namespace

bool CollectionImage::add(std::string_view key, std::string_view value) {
  if (bytes_.size() + key.size() + value.size() > kBytesMax) return false;
  bytes_.append(key);
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  bytes_.append(value);
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  return true;
}

size_t CollectionImage::find(std::string_view key) const {
  const auto indexes = std::views::iota(size_t{0}, size());
  return *std::ranges::lower_bound(indexes, key, {},
                                   [this](size_t index) { return this->key(index); });
}

void CollectionImage::shrink() {
  bytes_.shrink_to_fit();
  ends_.shrink_to_fit();
}

std::unique_ptr<Cursor> image_cursor(std::shared_ptr<const CollectionImage> image,
                                     std::string_view lower, std::string_view upper) {
  return std::make_unique<ImageCursor>(std::move(image), lower, upper);
}

std::shared_ptr<const CollectionImage> CollectionCache::get(const Name& name, uint32_t revision,
                                                            uint64_t elements, bool* make) {
  if (make != nullptr) *make = false;
  if (shard_bytes_max_.load(std::memory_order_relaxed) == 0) return nullptr;
  Shard& shard = shard_of(name);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(name);
  if (found == shard.entries.end()) {
    if (make == nullptr) return nullptr;
    shard.queue.push_back({.name = name, .revision = revision, .image = nullptr});
    shard.entries.emplace(name, std::prev(shard.queue.end()));
    shard.bytes += kEntryBytes;
    make_room(shard);
    return nullptr;
  }
  Entry& entry = *found->second;
  entry.used = true;
  if (entry.revision != revision) renew(shard, entry, revision, nullptr);
  if (entry.image) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    return entry.image;
  }
  if (make == nullptr) return nullptr;
  // A stream of few entries may have very many consumers.
  const uint64_t failed_for = entry.failures < 2 ? 0 : uint64_t{1} << entry.failures;
  *make = ++entry.asked > std::max(elements / kElementsPerRead << entry.failures, failed_for);
  if (*make) entry.asked = 0;  // whoever asks meanwhile need not make one, too
  return nullptr;
}

void CollectionCache::put(const Name& name, uint32_t revision,
                          std::shared_ptr<const CollectionImage> image) {
  Shard& shard = shard_of(name);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(name);
  if (found == shard.entries.end()) return;
  Entry& entry = *found->second;
  if (!image) {
    entry.failures = std::min(entry.failures + 1, kFailuresMax);
    return;
  }
  renew(shard, entry, revision, std::move(image));
  make_room(shard);
}

uint64_t CollectionCache::bytes_of(const Entry& entry) {
  return kEntryBytes + (entry.image ? entry.image->bytes() : 0);
}

void CollectionCache::renew(Shard& shard, Entry& entry, uint32_t revision,
                            std::shared_ptr<const CollectionImage> image) {
  shard.bytes -= bytes_of(entry);
  entry.revision = revision;
  entry.asked = 0;
  entry.image = std::move(image);
  shard.bytes += bytes_of(entry);
}

void CollectionCache::make_room(Shard& shard) {
  while (shard.bytes > shard_bytes_max_.load(std::memory_order_relaxed) && !shard.queue.empty()) {
    Entry& oldest = shard.queue.front();
    if (oldest.used) {
      oldest.used = false;
      shard.queue.splice(shard.queue.end(), shard.queue, shard.queue.begin());
    } else {
      shard.bytes -= bytes_of(oldest);
      shard.entries.erase(oldest.name);
      shard.queue.pop_front();
    }
  }
}

void CollectionCache::set_capacity(uint64_t bytes) {
  shard_bytes_max_.store(bytes / kShards, std::memory_order_relaxed);
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    make_room(shard);
  }
}

uint64_t CollectionCache::bytes() const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    sum += shard.bytes;
  }
  return sum;
}

}  // namespace ingot::storage

// Changes in an arena with an undo log, their order, and the cursor that merges it with the engine.
#include "storage/overlay.h"

#include <cstring>

#include "storage/check.h"
#include "storage/clear_to_little.h"
#include "storage/no_wait_reads.h"

namespace ingot::storage {

char* Arena::allocate(size_t bytes, size_t alignment) {
  used_ = (used_ + alignment - 1) / alignment * alignment;
  if (blocks_.empty() || used_ + bytes > blocks_.back().capacity) {
    const size_t next =
        blocks_.empty() ? kFirstBlockBytes : std::min(2 * blocks_.back().capacity, kBlockBytes);
    const size_t capacity = std::max(bytes, next);
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(capacity), capacity});
    bytes_ += capacity;
    used_ = 0;
  }
  char* at = blocks_.back().data.get() + used_;
  used_ += bytes;
  return at;
}

std::string_view Arena::copy(std::string_view bytes) {
  return join(bytes, {});
}

std::string_view Arena::join(std::string_view head, std::string_view tail, size_t spare) {
  char* at = allocate(head.size() + tail.size() + spare);
  std::memcpy(at, head.data(), head.size());
  if (!tail.empty()) std::memcpy(at + head.size(), tail.data(), tail.size());
  return {at, head.size() + tail.size()};
}

void Arena::clear() {
  if (!blocks_.empty()) blocks_.erase(blocks_.begin(), std::prev(blocks_.end()));
  if (!blocks_.empty() && blocks_.back().capacity > kBlockBytes) blocks_.clear();
  bytes_ = blocks_.empty() ? 0 : blocks_.back().capacity;
  used_ = 0;
}

Overlay::Overlay(Engine& engine, const Snapshot* snapshot, Tier tier, RecordCache* cache,
                 OrderCounts* counts)
    : engine_(engine),
      snapshot_(snapshot),
      cache_(snapshot == nullptr ? cache : nullptr),
      counts_(counts),
      tier_(tier) {}

Overlay::Change* Overlay::changed(const HashedKey& key) const {
  const auto found = changes_.find(key);
  return found == changes_.end() ? nullptr : *found;
}

template <typename Each>
void Overlay::each(const Each& each) const {
  for (const Undo& undo : undo_) {
    if (undo.before == nullptr) each(*undo.change);
  }
}

// Tables that have just grown are half empty.
size_t Overlay::bytes() const {
  constexpr size_t kOfChange = 2 * (sizeof(Change*) + 1);
  constexpr size_t kOfUndo = 2 * sizeof(Undo);
  constexpr size_t kOfOrder = 48;  // a node of the tree
  return arena_.bytes() + changes_.size() * kOfChange + undo_.size() * kOfUndo +
         order_.size() * kOfOrder;
}

Lookup Overlay::look_up(Space space, std::string_view key, Tier tier, std::string* value,
                        Status* status) {
  const HashedKey hashed(space, key);
  if (const Change* change = changed(hashed)) {
    if (change->now.removed) return Lookup::kAbsent;
    value->assign(change->now.value);
    return Lookup::kFound;
  }
  const bool cached = cache_ != nullptr && RecordCache::takes(space);
  if (cached && cache_->get(hashed, value)) return Lookup::kFound;
  if (!absent_.empty() && absent_.contains(hashed)) return Lookup::kAbsent;
  const RecordCache::Moment moment = cached ? cache_->now() : 0;
  const Lookup found = engine_.get(snapshot_, space, key, tier, value, status);
  if (cached && found == Lookup::kFound) cache_->fill(moment, hashed, *value);
  return found;
}

bool Overlay::get(Space space, std::string_view key, std::string* value) {
  if (failed()) return false;
  Status status;
  const Lookup found = look_up(space, key, tier_, value, &status);
  return settle(found, std::move(status));
}

Lookup Overlay::probe(Space space, std::string_view key, std::string* value) {
  const NoWaitReads::Refusal refusal;
  return look_up(space, key, Tier::kCacheOnly, value, nullptr);
}

void Overlay::uncommitted(Space space, std::string_view lower, std::string_view upper,
                          const std::function<void(std::string_view, std::string_view)>& take) {
  each([&](const Change& change) {
    const HashedKey& at = change.at;
    if (at.space != space || at.key < lower || at.key >= upper || change.now.removed) return;
    take(at.key, change.now.value);
  });
}

void Overlay::put(Space space, std::string_view key, std::string_view value) {
  INGOT_CHECK(!value.empty());
  change(space, key, {.value = arena_.copy(value)});
}

void Overlay::put_new(Space space, std::string_view key, std::string_view value) {
  INGOT_CHECK(!value.empty());
  change(space, key, {.value = arena_.copy(value), .is_new = true});
}

void Overlay::remove(Space space, std::string_view key) {
  change(space, key, {.removed = true});
}

// Bytes behind a value belong to nobody else: a shorter one that an undo brings back may be
// extended over what the longer one had there.
bool Overlay::extend(Space space, std::string_view key,
                     const std::function<bool(std::string_view)>& takes_it, std::string_view head,
                     std::string_view tail) {
  Change* const change = changed(HashedKey(space, key));
  if (change == nullptr || change->now.removed || !takes_it(change->now.value)) return false;
  State& now = change->now;
  undo_.push_back({.change = change, .before = arena_.create(now)});
  const size_t added = head.size() + tail.size();
  if (now.spare < added) {
    constexpr size_t kSpareMax = 64 << 10;
    const size_t spare = added + std::min(now.value.size() + added, kSpareMax);
    now.value = arena_.join(now.value, {}, spare);
    now.spare = static_cast<uint32_t>(spare);
  }
  char* end = const_cast<char*>(now.value.data()) + now.value.size();
  if (!head.empty()) std::memcpy(end, head.data(), head.size());
  if (!tail.empty()) std::memcpy(end + head.size(), tail.data(), tail.size());
  now.value = {now.value.data(), now.value.size() + added};
  now.spare -= static_cast<uint32_t>(added);
  return true;
}

void Overlay::change(Space space, std::string_view key, State now) {
  const HashedKey hashed(space, key);
  if (Change* const known = changed(hashed)) {
    undo_.push_back({.change = known, .before = arena_.create(known->now)});
    now.is_new = known->now.is_new;
    known->now = now;
    return;
  }
  Change* const change =
      arena_.create(Change{.at = HashedKey(hashed, arena_.copy(key)), .now = now});
  changes_.insert(change);
  if (ordered_) order_.insert(change);
  undo_.push_back({.change = change, .before = nullptr});
}

void Overlay::rollback(Savepoint savepoint) {
  INGOT_CHECK(savepoint <= undo_.size());  // of this group
  while (undo_.size() > savepoint) {
    const Undo& undo = undo_.back();
    if (undo.before != nullptr) {
      undo.change->now = *undo.before;
    } else {
      INGOT_CHECK(changes_.erase(undo.change) == 1);
      if (ordered_) order_.erase(undo.change);
    }
    undo_.pop_back();
  }
}

namespace {

// Eight bytes of a key from `begin` on, as a number that is ordered as they are.
uint64_t bytes_of(std::string_view key, size_t begin) {
  constexpr size_t kBytes = sizeof(uint64_t);
  if (key.size() >= begin + kBytes) return read_be64(key.substr(begin));
  char bytes[kBytes] = {};
  if (key.size() > begin) std::memcpy(bytes, key.data() + begin, key.size() - begin);
  return read_be64({bytes, kBytes});
}

bool is_element(const SpaceKey& at) {
  return at.space == Space::kData || at.space == Space::kOrder;
}

}  // namespace

// Most keys differ within the sixteen bytes that are compared as numbers.
std::vector<const Overlay::Change*> Overlay::sorted_changes() const {
  struct Placed {
    Space space;
    uint64_t head, next;
    const Change* change;
  };
  std::vector<Placed> placed;
  placed.reserve(changes_.size());
  each([&](const Change& change) {
    const SpaceKey& at = change.at;
    placed.push_back({at.space, bytes_of(at.key, 0), bytes_of(at.key, 8), &change});
  });
  std::ranges::sort(placed, [](const Placed& a, const Placed& b) {
    if (a.space != b.space) return a.space < b.space;
    if (a.head != b.head) return a.head < b.head;
    if (a.next != b.next) return a.next < b.next;
    return a.change->at.key < b.change->at.key;
  });
  std::vector<const Change*> sorted;
  sorted.reserve(placed.size());
  for (const Placed& each : placed) sorted.push_back(each.change);
  return sorted;
}

void Overlay::each_element(const EachChange& take) const {
  for (const Change* change : sorted_changes()) {
    if (is_element(change->at)) take(change->at.space, change->at.key, change->value());
  }
}

void Overlay::each_change(const EachChange& take) const {
  each([&](const Change& change) { take(change.at.space, change.at.key, change.value()); });
}

void Overlay::each_change(
    Space space, std::string_view lower, std::string_view upper,
    const std::function<bool(std::string_view, const std::string_view*)>& take) {
  if (changes_.empty()) return;
  const auto end = order().lower_bound(SpaceKey{space, upper});
  for (auto at = order_.lower_bound(SpaceKey{space, lower}); at != end; ++at) {
    if (!take((*at)->at.key, (*at)->value())) return;
  }
}

void Overlay::take_elements(const EachChange& take) {
  struct Other {
    Space space;
    std::string key;
    std::optional<std::string> value;
  };
  each_element(take);
  std::vector<Other> others;
  each([&](const Change& change) {
    if (is_element(change.at)) return;
    others.push_back({change.at.space, std::string(change.at.key), std::nullopt});
    if (!change.now.removed) others.back().value = change.now.value;
  });
  clear();
  for (const Other& other : others) {
    other.value ? put(other.space, other.key, *other.value) : remove(other.space, other.key);
  }
}

void Overlay::write_to(Batch* batch) const {
  for (const Change* change : sorted_changes()) {
    const auto& [at, now] = *change;
    if (now.removed && now.is_new) continue;  // came and went: the engine never had it
    now.removed ? batch->remove(at.space, at.key) : batch->put(at.space, at.key, now.value);
  }
}

void Overlay::read_ahead(Space space, std::string_view lower, std::string_view upper,
                         const std::function<void(std::string_view key)>& each) {
  if (cache_ == nullptr) return;
  constexpr size_t kBytesMax = 16 << 10;
  const auto at = engine_.new_cursor(space, {.snapshot = nullptr,
                                             .lower = std::string(lower),
                                             .upper = std::string(upper),
                                             .tier = tier_});
  size_t bytes = 0;
  for (at->seek(lower); at->valid() && bytes < kBytesMax; at->next()) {
    cache_->add(HashedKey(space, at->key()), at->value());
    each(at->key());
    bytes += at->key().size() + at->value().size();
  }
}

void Overlay::look_ahead(std::span<const HashedKey> keys) {
  if (cache_ == nullptr) return;
  for (const Space space : {Space::kMeta, Space::kData}) {
    std::vector<HashedKey> wanted;
    std::vector<std::string_view> names;
    for (const HashedKey& key : keys) {
      if (key.space != space || changed(key) != nullptr) continue;
      wanted.push_back(key);
      names.push_back(key.key);
    }
    std::vector<std::string> values(names.size());
    std::vector<Lookup> found(names.size(), Lookup::kMiss);
    if (!names.empty()) engine_.get_many(space, names, values, found);
    for (size_t i = 0; i < names.size(); ++i) {
      if (found[i] == Lookup::kFound) cache_->add(wanted[i], values[i]);
      if (found[i] == Lookup::kAbsent) absent_.emplace(wanted[i], arena_.copy(names[i]));
    }
  }
}

// The entries were met while the group ran, and have left the processor's cache since: they are
// fetched some at a time.
void Overlay::begin_cache_changes() {
  if (cache_ == nullptr) return;
  constexpr size_t kTogether = 16;
  changing_.clear();
  cache_->begin_changes();
  std::vector<HashedKey> some;
  some.reserve(kTogether);
  const auto begin_some = [&] {
    if (some.size() > 1) cache_->prefetch(some, nullptr);
    for (const HashedKey& at : some) changing_.push_back(cache_->begin_change(at));
    some.clear();
  };
  each([&](const Change& change) {
    if (!RecordCache::takes(change.at.space)) return;
    if (change.now.is_new) return cache_->begin_new();
    some.push_back(change.at);
    if (some.size() == kTogether) begin_some();
  });
  begin_some();
}

void Overlay::end_cache_changes(bool committed) {
  if (cache_ == nullptr) return;
  constexpr size_t kAhead = 8;
  cache_->end_changes();
  size_t next = 0;
  each([&](const Change& change) {
    const auto& [at, now] = change;
    if (!RecordCache::takes(at.space) || now.is_new) return;
    if (next + kAhead < changing_.size()) RecordCache::prefetch(changing_[next + kAhead]);
    cache_->end_change(at, changing_[next++], committed && !now.removed ? now.value : "");
  });
}

void Overlay::clear() {
  clear_to_little(changes_, changes_.bucket_count());
  clear_to_little(absent_, absent_.bucket_count());
  clear_to_little(undo_, undo_.capacity());
  clear_to_little(changing_, changing_.capacity());
  order_.clear();
  ordered_ = false;
  wants_commit_ = false;
  if (!orders_.empty()) orders_.clear();  // which goes over all that it ever held
  arena_.clear();
}

const Overlay::Ordered& Overlay::order() {
  if (!ordered_) {
    order_.insert(changes_.begin(), changes_.end());
    ordered_ = true;
  }
  return order_;
}

bool Overlay::changes(Space space, std::string_view lower, std::string_view upper) {
  if (changes_.empty()) return false;
  const auto first = order().lower_bound(SpaceKey{space, lower});
  return first != order_.end() && (*first)->at < SpaceKey{space, upper};
}

// Merges the engine's cursor with the overlay's changed keys. Both stand at or beyond the current
// position in the direction of travel; turning round seeks anew. Where the engine cannot go on, nor
// does this: what it could not read may stand before the next change.
class OverlayCursor : public Cursor {
 public:
  OverlayCursor(Overlay& overlay, Space space, std::unique_ptr<Cursor> base, std::string_view lower,
                std::string_view upper)
      : overlay_(overlay), base_(std::move(base)), space_(space), lower_(lower), upper_(upper) {}

  bool valid() const override { return valid_; }
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }
  Lookup outcome() const override { return base_->outcome(); }
  Status status() const override { return base_->status(); }

  void seek(std::string_view key) override {
    base_->seek(key);
    at_ = std::max(key, std::string_view(lower_));
    forward_ = true;
    settle_forward(/*inclusive=*/true);
  }

  void seek_for_prev(std::string_view key) override {
    base_->seek_for_prev(key);
    at_ = key;
    inclusive_end_ = true;
    if (!upper_.empty() && at_ >= upper_) {
      at_ = upper_;
      inclusive_end_ = false;
    }
    forward_ = false;
    settle_backward(inclusive_end_);
  }

  void next() override {
    at_ = key_;
    if (!forward_) {
      base_->seek(key_);
      forward_ = true;
    }
    if (base_->valid() && base_->key() == key_) base_->next();
    settle_forward(/*inclusive=*/false);
  }

  void prev() override {
    at_ = key_;
    if (forward_) {
      base_->seek_for_prev(key_);
      forward_ = false;
    }
    if (base_->valid() && base_->key() == key_) base_->prev();
    settle_backward(/*inclusive=*/false);
  }

 private:
  // Moves to the first live key after at_ (or at it, when inclusive).
  void settle_forward(bool inclusive) {
    const auto& order = overlay_.order();
    const SpaceKey at{space_, at_};
    auto change = inclusive ? order.lower_bound(at) : order.upper_bound(at);
    while (true) {
      bool has_change = change != order.end() && (*change)->at.space == space_ &&
                        (upper_.empty() || (*change)->at.key < upper_);
      bool has_base = base_->valid();
      if (!has_change && !has_base) return set_invalid();
      if (!has_base && base_->outcome() != Lookup::kFound) return set_invalid();
      std::string_view changed = has_change ? (*change)->at.key : std::string_view();
      if (has_base && (!has_change || base_->key() < changed)) {
        return set(base_->key(), base_->value());
      }
      // The engine's cursor may stay on the same key until next(): it is seldom asked to go on, and
      // to pass a key with many versions is slow.
      if (take(**change)) return;
      if (has_base && base_->key() == changed) base_->next();
      ++change;
    }
  }

  void settle_backward(bool inclusive) {
    const auto& order = overlay_.order();
    const SpaceKey at{space_, at_};
    auto change = inclusive ? order.upper_bound(at) : order.lower_bound(at);
    while (true) {
      bool has_change = change != order.begin() && (*std::prev(change))->at.space == space_ &&
                        (*std::prev(change))->at.key >= lower_;
      bool has_base = base_->valid();
      if (!has_change && !has_base) return set_invalid();
      if (!has_base && base_->outcome() != Lookup::kFound) return set_invalid();
      std::string_view changed = has_change ? (*std::prev(change))->at.key : std::string_view();
      if (has_base && (!has_change || base_->key() > changed)) {
        return set(base_->key(), base_->value());
      }
      if (take(**std::prev(change))) return;
      if (has_base && base_->key() == changed) base_->prev();
      --change;
    }
  }

  bool take(const Overlay::Change& change) {
    if (change.now.removed) return false;
    set(change.at.key, change.now.value);
    return true;
  }

  void set(std::string_view key, std::string_view value) {
    key_.assign(key);
    value_.assign(value);
    valid_ = true;
  }
  void set_invalid() { valid_ = false; }

  Overlay& overlay_;
  std::unique_ptr<Cursor> base_;
  Space space_;
  std::string lower_;
  std::string upper_;  // empty: open
  std::string at_;
  std::string key_;
  std::string value_;
  bool valid_ = false;
  bool forward_ = true;
  bool inclusive_end_ = true;
};

std::unique_ptr<Cursor> Overlay::committed_cursor(Space space, std::string_view lower,
                                                  std::string_view upper) const {
  return engine_.new_cursor(space, {.snapshot = snapshot_,
                                    .lower = std::string(lower),
                                    .upper = std::string(upper),
                                    .tier = tier_});
}

std::unique_ptr<Cursor> Overlay::cursor(Space space, std::string_view lower,
                                        std::string_view upper) {
  return std::make_unique<OverlayCursor>(*this, space, committed_cursor(space, lower, upper), lower,
                                         upper);
}

}  // namespace ingot::storage

// Finding leaves by sums of counts, taking the records of a level in, and following commits.
#include "storage/order_counts.h"

#include <algorithm>
#include <utility>

namespace ingot::storage {

namespace {

// A request asks twice: of the latest state, and of a view. So with the second request.
constexpr uint8_t kAskedToMake = 3;

template <typename Records>
auto find_bound(Records& records, std::string_view bound) {
  return std::ranges::lower_bound(
      records, bound, {}, [](const auto& record) -> std::string_view { return record.bound; });
}

bool count_ask(uint8_t* asked) {
  if (*asked < kAskedToMake) ++*asked;
  return *asked == kAskedToMake;
}

}  // namespace

// Of the record alone, whatever its string has allocated: the same when it comes and when it goes.
uint64_t OrderCounts::bytes_of(const Record& record) {
  return sizeof(Record) + record.bound.size();
}

// With all that is below them.
uint64_t OrderCounts::bytes_of(const Records& records) {
  uint64_t bytes = 0;
  for (const Record& each : records) bytes += bytes_of(each) + bytes_of(each.below);
  return bytes;
}

// `find` tells which of some records is the wanted one, and steps over those before it.
template <typename Find>
OrderCounts::Answer OrderCounts::ask(CollectionId id, uint32_t revision, const Find& find) {
  Queue gone;
  std::lock_guard lock(mutex_);
  Order* const order = find_order(id, revision, &gone);
  if (order == nullptr) return {};
  order->used = true;
  Answer answer;
  if (order->top.empty()) {
    if (count_ask(&order->asked)) answer.missing = Missing{.level = kTop, .behind = {}, .last = {}};
    return answer;
  }
  uint64_t before = 0;
  Records* records = &order->top;
  std::string_view behind;
  for (int level = kTop;; --level) {
    const auto at = find(*records, &before);
    if (at == records->end()) return answer;
    if (at != records->begin()) behind = std::prev(at)->bound;
    if (level == kLeaf) {
      answer.leaf = Leaf{.bound = at->bound, .before = before, .count = at->count};
      return answer;
    }
    if (!at->known) {
      if (count_ask(&at->asked)) {
        answer.missing =
            Missing{.level = level - 1, .behind = std::string(behind), .last = at->bound};
      }
      return answer;
    }
    records = &at->below;
  }
}

OrderCounts::Answer OrderCounts::leaf_of(CollectionId id, uint32_t revision,
                                         std::string_view bound) {
  return ask(id, revision, [&](Records& records, uint64_t* before) {
    const auto at = find_bound(records, bound);
    for (auto each = records.begin(); each != at; ++each) *before += each->count;
    return at;
  });
}

OrderCounts::Answer OrderCounts::leaf_at(CollectionId id, uint32_t revision, uint64_t rank) {
  return ask(id, revision, [&](Records& records, uint64_t* before) {
    auto at = records.begin();
    for (; at != records.end() && rank - *before >= at->count; ++at) *before += at->count;
    return at;
  });
}

// Made if there is none; null for a revision that is not the known one.
OrderCounts::Order* OrderCounts::find_order(CollectionId id, uint32_t revision, Queue* gone) {
  if (capacity_ == 0) return nullptr;
  auto found = orders_.find(id);
  if (found == orders_.end()) {
    queue_.push_back({.id = id, .revision = revision, .bytes = sizeof(Order), .top = {}});
    orders_.emplace(id, std::prev(queue_.end()));
    bytes_ += sizeof(Order);
    any_ = true;
    make_room(gone);
    found = orders_.find(id);
    if (found == orders_.end()) return nullptr;
  }
  Order& order = *found->second;
  if (order.revision == revision) return &order;
  if (!order.top.empty()) return nullptr;
  order.revision = revision;
  return &order;
}

void OrderCounts::put(CollectionId id, uint32_t revision, int level, std::vector<Node> nodes) {
  if (nodes.empty()) return;
  Records made(nodes.size());
  uint64_t count = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    count += nodes[i].count;
    made[i].bound = std::move(nodes[i].bound);
    made[i].count = nodes[i].count;
  }
  Queue gone;
  std::lock_guard lock(mutex_);
  const auto found = orders_.find(id);
  if (found == orders_.end()) return;
  Order& order = *found->second;
  Records* target = &order.top;
  if (level == kTop) {
    order.revision = revision;
  } else {
    if (order.revision != revision) return;
    Records* const above = records(order, level + 1, made.back().bound);
    if (above == nullptr) return;
    const auto counts = find_bound(*above, made.back().bound);
    if (counts == above->end() || counts->bound != made.back().bound || counts->count != count) {
      return;
    }
    counts->known = true;
    target = &counts->below;
  }
  resize(order, bytes_of(made), bytes_of(*target));
  *target = std::move(made);
  make_room(&gone);
}

void OrderCounts::resize(Order& order, uint64_t more, uint64_t less) {
  order.bytes += more - less;
  bytes_ += more - less;
}

// Those of a level among which a bound stands; null where they are not known.
OrderCounts::Records* OrderCounts::records(Order& order, int level, std::string_view bound) {
  Records* found = &order.top;
  for (int above = kTop; above > level; --above) {
    const auto at = find_bound(*found, bound);
    if (at == found->end() || !at->known) return nullptr;
    found = &at->below;
  }
  return found;
}

// What it counts, the next of its level counts now. False: that cannot be.
bool OrderCounts::remove(Order& order, const Change& change) {
  Records* const found = records(order, change.level, change.bound);
  if (found == nullptr) return true;
  const auto at = find_bound(*found, change.bound);
  if (at == found->end() || at->bound != change.bound) return true;
  const auto next = std::next(at);
  if (next == found->end()) return false;
  uint64_t less = bytes_of(*at);
  if (at->known && next->known) {
    next->below.insert(next->below.begin(), std::make_move_iterator(at->below.begin()),
                       std::make_move_iterator(at->below.end()));
  } else {
    less += bytes_of(at->below) + bytes_of(next->below);
    next->known = false;
    next->below.clear();
  }
  found->erase(at);
  resize(order, 0, less);
  return true;
}

// A new one counts what is up to its bound and was the next one's. False: that cannot be.
bool OrderCounts::set(Order& order, const Change& change) {
  Records* const found = records(order, change.level, change.bound);
  if (found == nullptr) return true;
  const auto at = find_bound(*found, change.bound);
  if (at == found->end()) return false;
  if (at->bound != change.bound) {
    Record added{.bound = std::string(change.bound), .known = at->known, .below = {}};
    Records& from = at->below;
    auto end = find_bound(from, change.bound);
    if (end != from.end() && end->bound == change.bound) ++end;
    added.below.assign(std::make_move_iterator(from.begin()), std::make_move_iterator(end));
    from.erase(from.begin(), end);
    resize(order, bytes_of(added), 0);
    found->insert(at, std::move(added))->count = *change.count;
  } else {
    at->count = *change.count;
  }
  return true;
}

bool OrderCounts::holds(CollectionId id) const {
  std::lock_guard lock(mutex_);
  return orders_.contains(id);
}

void OrderCounts::follow(CollectionId id, uint32_t before, uint32_t after,
                         std::span<const Change> changes) {
  Queue gone;
  std::lock_guard lock(mutex_);
  const auto found = orders_.find(id);
  if (found == orders_.end() || found->second->top.empty()) return;
  Order& order = *found->second;
  if (order.revision != before) return erase(found->second, &gone);
  // A bound of a level is one of the levels below: it goes there last, and comes there first.
  bool fits = true;
  for (const int level : {3, 2, 1}) {
    for (const Change& change : changes) {
      if (change.level == level && !change.count) fits = fits && remove(order, change);
    }
  }
  for (const int level : {1, 2, 3}) {
    for (const Change& change : changes) {
      if (change.level == level && change.count) fits = fits && set(order, change);
    }
  }
  order.revision = after;
  if (!fits) erase(found->second, &gone);
}

void OrderCounts::forget(CollectionId id) {
  Queue gone;
  std::lock_guard lock(mutex_);
  if (const auto found = orders_.find(id); found != orders_.end()) erase(found->second, &gone);
}

void OrderCounts::erase(Queue::iterator at, Queue* gone) {
  bytes_ -= at->bytes;
  orders_.erase(at->id);
  gone->splice(gone->end(), queue_, at);
  any_ = !queue_.empty();
}

void OrderCounts::make_room(Queue* gone) {
  while (bytes_ > capacity_ && !queue_.empty()) {
    const auto first = queue_.begin();
    if (std::exchange(first->used, false) && queue_.size() > 1) {
      queue_.splice(queue_.end(), queue_, first);
    } else {
      erase(first, gone);
    }
  }
}

void OrderCounts::set_capacity(uint64_t bytes) {
  Queue gone;
  std::lock_guard lock(mutex_);
  capacity_ = bytes;
  make_room(&gone);
}

uint64_t OrderCounts::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace ingot::storage

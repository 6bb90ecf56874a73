// A long ordered sequence on an engine under test, changed by the writer's class and checked
// against a plain ordered set, with the counts that are known of it: for tests of orders.
//
// One thread.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/types/counted_order.h"
#include "storage/order_counts.h"
#include "tests/src/typed_store.h"

namespace ingot::types {

class Sequence {
 public:
  static constexpr storage::CollectionId kSequence = 7;

  explicit Sequence(const std::string& engine) : store_(engine) {
    counts_.set_capacity(64 << 20);
    store_.use_counts(&counts_);
  }

  bool on_disk() const { return store_.on_disk(); }
  size_t steps(size_t in_memory) const { return store_.steps(in_memory); }
  void add(const std::string& item) {
    if (!model_.insert(item).second) return;
    changed_order().add(item, marked(item));
  }
  void remove(std::string item) {
    if (model_.erase(item) == 0) return;
    const auto behind = changed_order().remove(item);
    const auto next = model_.upper_bound(item);
    if (behind) REQUIRE((next != model_.end() && *next == *behind));
  }
  void remove_between(const std::string& first, const std::string& last) {
    std::vector<std::string> gone;
    changed_order().remove_between(first, last,
                                   [&](std::string_view item) { gone.emplace_back(item); });
    const auto begin = model_.lower_bound(first);
    const auto end = model_.upper_bound(last);
    REQUIRE(gone == std::vector<std::string>(begin, end));
    model_.erase(begin, end);
  }
  void move(const std::string& from, const std::string& to) {
    if (!model_.contains(from) || model_.contains(to)) return;
    model_.erase(from);
    model_.insert(to);
    changed_order().move(from, to, marked(to));
  }
  void check(std::mt19937_64& random) {
    REQUIRE_FALSE(store_.overlay().failed());
    for (int i = 0; i < 20 && !model_.empty(); ++i) {
      const size_t rank = random() % model_.size();
      const std::string& item = *std::next(model_.begin(), static_cast<long>(rank));
      REQUIRE(order().rank(item) == rank);
      REQUIRE(order().rank(item + "!") == rank + 1);
      REQUIRE(order().at(rank) == item);
    }
    // A stretch of both directions, with the marks.
    const uint64_t from = model_.empty() ? 0 : random() % model_.size();
    auto up = std::next(model_.begin(), static_cast<long>(from));
    order().walk(from, false, [&](std::string_view item, bool its_mark) {
      REQUIRE(up != model_.end());
      REQUIRE(item == *up);
      REQUIRE(its_mark == marked(item));
      return ++up != model_.end() && random() % 500 != 0;
    });
    auto down = std::next(model_.begin(), static_cast<long>(from));
    order().walk(from, true, [&](std::string_view item, bool its_mark) {
      REQUIRE(item == *down);
      REQUIRE(its_mark == marked(item));
      return down-- != model_.begin() && random() % 500 != 0;
    });
    check_leaves(random);
    check_ends();
    REQUIRE_FALSE(order().at(model_.size()));
    REQUIRE(order().rank("\xff") == model_.size());
    REQUIRE(order().rank("") == 0);
  }
  // The lowest is not told where its leaf is empty.
  void check_ends() {
    const auto lowest = order().lowest();
    const auto highest = order().highest();
    if (model_.empty()) {
      REQUIRE_FALSE(lowest);
      REQUIRE_FALSE(highest);
      return;
    }
    if (lowest)
      REQUIRE((lowest->item == *model_.begin() && lowest->marked == marked(lowest->item)));
    ends_told_ += lowest ? 1 : 0;
    check_last();
  }
  void check_last() {
    const auto highest = order().highest();
    REQUIRE(highest.has_value() == !model_.empty());
    if (!highest) return;
    REQUIRE((highest->item == *model_.rbegin() && highest->marked == marked(highest->item)));
    auto at = model_.rbegin();
    size_t left = 20;
    order().walk_from_last([&](std::string_view item, bool its_mark) {
      REQUIRE(at != model_.rend());
      REQUIRE((item == *at++ && its_mark == marked(item)));
      return --left != 0;
    });
    REQUIRE((left == 0 || at == model_.rend()));
  }
  // What a streamed reply would read of some ranks.
  void check_leaves(std::mt19937_64& random) {
    if (model_.empty()) return;
    const uint64_t first = random() % model_.size();
    const uint64_t end = first + 1 + random() % std::min<size_t>(300, model_.size() - first);
    const auto leaves = order().leaves(first, end);
    REQUIRE(leaves);
    std::vector<std::string> found;
    const auto at = store_.overlay().cursor(storage::Space::kOrder, leaves->lower, leaves->upper);
    for (at->seek(leaves->lower); at->valid(); at->next()) {
      REQUIRE(CountedOrder::read_leaf(at->value(), [&](std::string_view item, bool) {
        if (item >= leaves->first && item <= leaves->last) found.emplace_back(item);
        return true;
      }));
    }
    const auto begin = std::next(model_.begin(), static_cast<long>(first));
    const auto behind = std::next(begin, static_cast<long>(end - first));
    REQUIRE(found == std::vector<std::string>(begin, behind));
  }
  void build(const std::set<std::string>& items) {
    model_ = items;
    store_.overlay().note_order(kSequence, revision_);
    types::CountedOrderBuilder builder(
        [&](storage::Space space, std::string_view element, std::string_view record) {
          store_.overlay().put(space, storage::collection_begin(kSequence).append(element), record);
        });
    for (const std::string& item : model_) builder.add(item, marked(item));
    builder.finish();
  }
  size_t records() { return store_.records_in(storage::Space::kOrder); }
  size_t longest_key() {
    size_t longest = 0;
    for (const auto& [key, record] : store_.records_of(storage::Space::kOrder)) {
      longest = std::max(longest, key.size());
    }
    return longest;
  }
  // Changes that are taken back, as a unit of the writer that misses a block.
  void undone(const std::function<void()>& changes) {
    const auto model = model_;
    store_.undone(changes);
    model_ = model;
  }
  // As between two groups of the writer.
  void commit() {
    if (model_.size() % 3 == 0) store_.state().orders = {};  // it may be forgotten
    std::vector<storage::OrderCounts::Change> changes;
    store_.overlay().each_change(
        [&](storage::Space, std::string_view key, const std::string_view* record) {
          if (const auto change = order_change(key, record)) changes.push_back(change->change);
        });
    counts_.follow(kSequence, revision_, revision_ + 1, changes);
    ++revision_;
    store_.commit();
    check_counts();
  }
  // Readers of the committed state, who keep what they have walked over and find it again.
  void check_counts() {
    std::mt19937_64 random(revision_);
    for (int i = 0; i < 200 && !model_.empty(); ++i) {
      storage::EngineReader data(store_.engine(), nullptr, storage::Tier::kDisk,
                                 storage::CacheUse::kFill,
                                 {.cache = nullptr, .images = nullptr, .counts = &counts_});
      CountedOrder committed(data, kSequence, {}, revision_);
      const std::string last = check_known(committed, random);
      REQUIRE(data.error().ok());
      const auto bound = std::string(1, '\0') + last;
      found_ += counts_.leaf_of(kSequence, revision_, bound).leaf ? 1 : 0;
      walked_ += data.has_walked() ? 1 : 0;
    }
  }
  // The writer in the middle of a group: what is known, with what it has changed. A revision that
  // is not committed yet may come again, with other elements.
  void check_pending(std::mt19937_64& random) {
    storage::Overlay& data = store_.overlay();
    const uint32_t its = revision_ + (data.committed_revision(kSequence) ? 1 : 0);
    for (int i = 0; i < 20 && !model_.empty(); ++i) {
      CountedOrder pending(data, kSequence, {}, its);
      const std::string last = check_known(pending, random);
      REQUIRE_FALSE(data.failed());
      PendingCounts counts(data, kSequence, its);
      pending_found_ += counts.leaf_of(std::string(1, '\0') + last).leaf ? 1 : 0;
    }
  }
  size_t pending_found() const { return pending_found_; }
  size_t found() const { return found_; }
  size_t walked() const { return walked_; }
  bool levels_loaded() { return store_.state().orders.nodes(kSequence, 2) != nullptr; }
  void forget_levels() { store_.state().orders = {}; }
  const std::set<std::string>& model() const { return model_; }
  size_t ends_told() const { return ends_told_; }

 private:
  // A rank and a walk from there; where that ended.
  std::string check_known(CountedOrder& known, std::mt19937_64& random) {
    const size_t rank = random() % model_.size();
    auto at = std::next(model_.begin(), static_cast<long>(rank));
    REQUIRE(known.rank(*at) == rank);
    REQUIRE(known.rank(*at + '\0') == rank + 1);
    size_t left = random() % 40 + 1;
    const bool reverse = random() % 2 == 0;
    known.walk(rank, reverse, [&](std::string_view item, bool its_mark) {
      REQUIRE(item == *at);
      REQUIRE(its_mark == marked(item));
      if (at == (reverse ? model_.begin() : std::prev(model_.end()))) return false;
      reverse ? --at : ++at;
      return --left != 0;
    });
    return *at;
  }
  CountedOrderWriter changed_order() {
    store_.overlay().note_order(kSequence, revision_);
    return order();
  }
  CountedOrderWriter order() { return {store_.overlay(), store_.state().orders, kSequence, {}}; }
  bool marked(std::string_view item) const { return !item.empty() && item.back() % 3 == 0; }

  TypedStore store_;
  storage::OrderCounts counts_;
  uint32_t revision_ = 1;
  size_t found_ = 0, walked_ = 0;  // by check_counts()
  size_t pending_found_ = 0;
  std::set<std::string> model_;
  size_t ends_told_ = 0;
};

inline std::string numbered(uint64_t number) {
  std::string item;
  storage::append_be32(&item, static_cast<uint32_t>(number));
  return item;
}

}  // namespace ingot::types

// Lists against a plain deque: every change in small, dense and gapped form, across commits.
#include "src/types/list_value.h"

#include <catch2/catch.hpp>
#include <deque>
#include <random>

#include "src/types/keyspace.h"
#include "storage/engine.h"

namespace ingot::types {
namespace {

class Ids : public CollectionIds {
 public:
  storage::CollectionId next() override { return ++last_; }

 private:
  storage::CollectionId last_ = 0;
};

class Data {
 public:
  explicit Data(uint64_t inline_max) : inline_max_(inline_max) { state_.databases = {0}; }

  template <typename Change>
  void change(const Change& change) {
    KeyWriter keys(overlay_, state_, ids_, effects_, 1, nullptr, false);
    Record before;
    const bool found = keys.find(0, "l", &before);
    ListWriter list(keys, 0, "l", found ? &before : nullptr, inline_max_);
    change(list);
    list.finish();
    REQUIRE_FALSE(overlay_.failed());
  }
  void commit() {
    auto batch = engine_->new_batch();
    overlay_.write_to(batch.get());
    REQUIRE(engine_->write(*batch, storage::Durability::kBuffered).ok());
    overlay_.clear();
  }
  void check(const std::deque<std::string>& model, std::mt19937_64& random) {
    KeyReader keys(overlay_, state_.databases, 1, nullptr);
    Record record;
    const bool found = keys.find(0, "l", &record);
    REQUIRE(found == !model.empty());
    if (!found) return;
    ListReader list(overlay_, record);
    REQUIRE(list.length() == model.size());
    const size_t from = random() % model.size();
    std::deque<std::string> read;
    list.walk(from, [&](std::string_view element) {
      read.emplace_back(element);
      return true;
    });
    REQUIRE(read == std::deque<std::string>(model.begin() + static_cast<long>(from), model.end()));
    read.clear();
    list.walk_back([&](std::string_view element) {
      read.emplace_front(element);
      return true;
    });
    REQUIRE(read == model);
    const size_t index = random() % model.size();
    std::string element;
    REQUIRE(list.get(index, &element));
    REQUIRE(element == model[index]);
    REQUIRE_FALSE(overlay_.failed());
  }

 private:
  const uint64_t inline_max_;
  std::unique_ptr<storage::Engine> engine_ = storage::open_memory({}).first;
  storage::Overlay overlay_{*engine_, nullptr, storage::Tier::kDisk};
  KeyspaceState state_;
  Ids ids_;
  Effects effects_;
};

// The first `count` equal ones go, from the back when negative.
uint64_t remove(std::deque<std::string>& model, int64_t count, const std::string& element) {
  uint64_t removed = 0;
  uint64_t left = count == 0 ? model.size() : static_cast<uint64_t>(std::abs(count));
  if (count < 0) std::ranges::reverse(model);
  std::deque<std::string> kept;
  for (const std::string& each : model) {
    if (each == element && left > 0) {
      --left;
      ++removed;
    } else {
      kept.push_back(each);
    }
  }
  model = kept;
  if (count < 0) std::ranges::reverse(model);
  return removed;
}

}  // namespace

TEST_CASE("a list does what a deque does, in every form", "[list]") {
  const auto [inline_max, insertions] =
      GENERATE(table<uint64_t, int>({{0, 0}, {0, 3}, {60, 2}, {100000, 3}}));
  const uint64_t seed = GENERATE(1, 2);
  INFO("inline_max " << inline_max << " insertions " << insertions << " seed " << seed);
  std::mt19937_64 random(seed);
  Data data(inline_max);
  std::deque<std::string> model;
  for (int step = 0; step < 3000; ++step) {
    const std::string element = "e" + std::to_string(random() % 40);
    const ListEnd end = random() % 2 == 0 ? ListEnd::kLeft : ListEnd::kRight;
    const int kind = static_cast<int>(random() % 12);
    data.change([&](ListWriter& list) {
      if (kind < 5) {
        list.push(end, element);
        end == ListEnd::kLeft ? model.push_front(element) : model.push_back(element);
      } else if (kind < 7 && !model.empty()) {
        std::string taken;
        list.pop(end, &taken);
        REQUIRE(taken == (end == ListEnd::kLeft ? model.front() : model.back()));
        end == ListEnd::kLeft ? model.pop_front() : model.pop_back();
      } else if (kind == 7 && !model.empty()) {
        const size_t index = random() % model.size();
        list.set(index, element);
        model[index] = element;
      } else if (kind < 8 + insertions) {
        const std::string pivot = "e" + std::to_string(random() % 40);
        const bool before = random() % 2 == 0;
        auto at = std::ranges::find(model, pivot);
        REQUIRE(list.insert(before, pivot, element) == (at != model.end()));
        if (at != model.end()) model.insert(before ? at : at + 1, element);
      } else if (kind == 11 && insertions > 0 && random() % 8 == 0) {
        const int64_t count = static_cast<int64_t>(random() % 5) - 2;
        REQUIRE(list.remove(count, element) == remove(model, count, element));
      }
    });
    if (step % 7 == 0) data.check(model, random);
    if (step % 50 == 0) data.commit();
  }
  data.check(model, random);
}

TEST_CASE("insertions at one place find room for ever", "[list]") {
  std::mt19937_64 random(1);
  Data data(0);
  std::deque<std::string> model = {"a", "b"};
  data.change([&](ListWriter& list) {
    for (const std::string& element : model) list.push(ListEnd::kRight, element);
  });
  const bool before = GENERATE(true, false);
  for (int i = 0; i < 2000; ++i) {
    const std::string element = std::to_string(i);
    data.change(
        [&](ListWriter& list) { REQUIRE(list.insert(before, before ? "b" : "a", element)); });
    model.insert(before ? model.end() - 1 : model.begin() + 1, element);
    if (i % 100 == 0) data.commit();
  }
  data.check(model, random);
}

}  // namespace ingot::types

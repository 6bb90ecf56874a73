// The order of a memtable's entries: against a std::map, and read by others while it grows.
#include "storage/rocksdb/memtable_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ingot::storage {
namespace {

std::string internal_key(std::string_view user_key, uint64_t sequence) {
  std::string bytes(user_key);
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(sequence >> (8 * i) & 0xff);
  return bytes;
}

std::string entry_of(std::string_view internal_key) {
  std::string bytes;
  size_t left = internal_key.size();
  for (; left >= 0x80; left >>= 7) bytes += static_cast<char>(left | 0x80);
  bytes += static_cast<char>(left);
  return bytes.append(internal_key).append("value");
}

class Tree {
 public:
  MemtableTree& tree() { return tree_; }
  // Returns the place where the entry stays.
  const char* insert(std::string_view user_key, uint64_t sequence) {
    entries_.push_back(entry_of(internal_key(user_key, sequence)));
    tree_.insert(entries_.back().data());
    return entries_.back().data();
  }

 private:
  std::deque<std::vector<uint64_t>> blocks_;
  std::deque<std::string> entries_;
  MemtableTree tree_{[this](size_t bytes) {
    blocks_.emplace_back((bytes + 7) / 8);
    return reinterpret_cast<char*>(blocks_.back().data());
  }};
};

using Name = std::pair<std::string, uint64_t>;
struct Before {
  bool operator()(const Name& a, const Name& b) const {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  }
};

// Takes keys as they come, and compares all that a cursor can do with a map.
class Model {
 public:
  void insert(const std::string& user_key) {
    const Name name(user_key, ++sequence_);
    names_[name] = tree_.insert(user_key, sequence_);
  }
  void check_walks() {
    MemtableTree::Cursor cursor(tree_.tree());
    cursor.seek_to_first();
    for (const auto& [name, entry] : names_) {
      REQUIRE(cursor.entry() == entry);
      cursor.next();
    }
    REQUIRE(cursor.entry() == nullptr);
    cursor.seek_to_last();
    for (auto it = names_.rbegin(); it != names_.rend(); ++it) {
      REQUIRE(cursor.entry() == it->second);
      cursor.prev();
    }
    REQUIRE(cursor.entry() == nullptr);
  }
  void check_seeks(const std::string& user_key, uint64_t sequence) {
    MemtableTree::Cursor cursor(tree_.tree());
    const std::string sought = internal_key(user_key, sequence);
    const auto first = names_.lower_bound({user_key, sequence});
    cursor.seek(sought);
    REQUIRE(cursor.entry() == (first == names_.end() ? nullptr : first->second));
    const auto after = names_.upper_bound({user_key, sequence});
    cursor.seek_for_prev(sought);
    REQUIRE(cursor.entry() == (after == names_.begin() ? nullptr : std::prev(after)->second));
  }
  uint64_t sequence() const { return sequence_; }

 private:
  Tree tree_;
  std::map<Name, const char*, Before> names_;
  uint64_t sequence_ = 0;
};

std::string random_key(std::mt19937_64& random) {
  switch (random() % 5) {
    case 0:
      return std::to_string(random() % 1000);
    case 1:
      return "a prefix longer than a head:" + std::to_string(random() % 3000);
    case 2:
      return std::string(random() % 20, '\0');
    case 3:
      return std::string(random() % 12, '\xff') + static_cast<char>(random());
    default: {
      std::string bytes(random() % 14, 'x');
      for (char& byte : bytes) byte = static_cast<char>(random() % 3 == 0 ? random() : 'x');
      return bytes;
    }
  }
}

TEST_CASE("heads below one and equal to it are counted", "[memtable_tree]") {
  std::mt19937_64 random(7);
  struct {
    NodeHeads heads;
    std::array<uint64_t, kNodePlaces> behind{};
  } node;
  for (int round = 0; round < 20'000; ++round) {
    // Few bits, so that some are equal; at either end, where signed numbers are ordered otherwise.
    const auto any = [&] { return (random() % 4) << 62 | random() % 3; };
    for (auto& head : node.heads) head.store(any(), std::memory_order_relaxed);
    const auto count = static_cast<int>(random() % (kNodePlaces + 1));
    const uint64_t sought = any();
    const auto matching = [&](const auto& is) {
      return std::count_if(node.heads.begin(), node.heads.begin() + count,
                           [&](const auto& head) { return is(head.load()); });
    };
    const HeadCounts counts = count_heads(node.heads, count, sought);
    REQUIRE(counts.below == matching([&](uint64_t head) { return head < sought; }));
    REQUIRE(counts.equal == matching([&](uint64_t head) { return head == sought; }));
  }
}

TEST_CASE("a tree has what a map has", "[memtable_tree]") {
  std::mt19937_64 random(7);
  Model model;
  model.check_walks();
  model.check_seeks("nothing", 1);
  for (int i = 0; i < 20'000; ++i) {
    model.insert(random_key(random));
    model.check_seeks(random_key(random), random() % (2 * model.sequence()));
    if (i < 100 || i % 1000 == 0) model.check_walks();
  }
  model.check_walks();
}

TEST_CASE("keys in order, either way, and one key many times", "[memtable_tree]") {
  const auto name = [](int number) { return fmt::format("key:{:08}", number); };
  std::mt19937_64 random(7);
  for (const int way : {0, 1, 2}) {
    Model model;
    for (int i = 0; i < 5000; ++i)
      model.insert(way == 0 ? name(i) : way == 1 ? name(-i + 9000) : "one");
    model.check_walks();
    for (int i = 0; i < 1000; ++i) {
      model.check_seeks(name(static_cast<int>(random() % 10'000)), random() % 6000);
      model.check_seeks("one", random() % 6000);
    }
  }
}

TEST_CASE("whoever reads finds all that was there before, while a tree grows", "[memtable_tree]") {
  constexpr size_t kEntries = 200'000;
  Tree tree;
  std::vector<std::string> names(kEntries);
  std::mt19937_64 random(7);
  for (size_t i = 0; i < kEntries; ++i) {
    // Some in the same place, so that nodes are divided where somebody stands.
    names[i] = i % 3 == 0 ? fmt::format("{:06}", i) : fmt::format("{:016x}", random());
  }
  std::vector<std::atomic<const char*>> entries(kEntries);
  std::atomic<size_t> inserted = 0;

  const auto look_up = [&](uint64_t seed) {
    std::mt19937_64 mine(seed);
    MemtableTree::Cursor cursor(tree.tree());
    size_t wrong = 0;
    for (size_t there = 0; there < kEntries;) {
      there = inserted.load(std::memory_order_acquire);
      if (there == 0) continue;
      const size_t one = mine() % there;
      cursor.seek(internal_key(names[one], UINT64_MAX));
      wrong += static_cast<size_t>(cursor.entry() != entries[one].load(std::memory_order_relaxed));
    }
    return wrong;
  };
  const auto walk = [&](bool forwards) {
    size_t wrong = 0;
    for (size_t there = 0; there < kEntries;) {
      there = inserted.load(std::memory_order_acquire);
      MemtableTree::Cursor cursor(tree.tree());
      size_t seen = 0;
      std::string_view last;
      forwards ? cursor.seek_to_first() : cursor.seek_to_last();
      for (; cursor.entry() != nullptr; forwards ? cursor.next() : cursor.prev()) {
        auto key = MemtableTree::internal_key_of(cursor.entry());
        key.remove_suffix(8);
        if (seen++ > 0) wrong += static_cast<size_t>(forwards ? key <= last : key >= last);
        last = key;
      }
      wrong += static_cast<size_t>(seen < there);
    }
    return wrong;
  };
  // Looks at the same nodes as whoever inserts, without any care.
  const auto fetch = [&] {
    std::mt19937_64 mine(2);
    std::vector<std::string> keys(40);
    while (inserted.load(std::memory_order_acquire) < kEntries) {
      for (std::string& key : keys) key = internal_key(names[mine() % kEntries], 0);
      const std::vector<std::string_view> views(keys.begin(), keys.end());
      tree.tree().prefetch(views);
    }
  };
  std::array<size_t, 3> wrong{};
  std::vector<std::thread> readers;
  readers.emplace_back(fetch);
  readers.emplace_back([&] { wrong[0] = look_up(1); });
  readers.emplace_back([&] { wrong[1] = walk(true); });
  readers.emplace_back([&] { wrong[2] = walk(false); });
  for (size_t i = 0; i < kEntries; ++i) {
    entries[i].store(tree.insert(names[i], i + 1), std::memory_order_relaxed);
    inserted.store(i + 1, std::memory_order_release);
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == std::array<size_t, 3>{});
}

}  // namespace
}  // namespace ingot::storage

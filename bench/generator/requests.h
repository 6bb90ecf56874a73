// A command with places that change from request to request, and the numbers that are put there:
//
//   {random}   any of the keys     {next}   every key once, in no order
//   {hot}      any of the first --hot-keys of that order
//   {value}    --value-bytes that do not compress
//
// A number has twelve digits, as redis-benchmark writes them.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace generator {

// A bijection of the numbers below `size` that looks like chance, the same in every run.
class Shuffle {
 public:
  explicit Shuffle(uint64_t size);
  uint64_t operator()(uint64_t number) const;

 private:
  uint64_t size_;
  int half_bits_;
};

// What all threads have in common. Constant but for `next`.
struct Numbers {
  explicit Numbers(uint64_t key_count) : keys(key_count), order(key_count) {}

  uint64_t keys;
  uint64_t hot_keys = 1;
  size_t value_bytes = 100;
  Shuffle order;
  std::atomic<uint64_t> next = 0;
};

// One command. Not thread-safe: each thread has its own.
class Template {
 public:
  // Throws std::invalid_argument for a {name} that there is not.
  Template(const std::vector<std::string>& words, Numbers& numbers, uint64_t seed);
  void append_to(std::string& out);

 private:
  enum class Place { kNone, kRandom, kNext, kHot, kValue };
  // Text as it is sent, and what follows it.
  struct Piece {
    std::string text;
    Place place = Place::kNone;
  };

  void compile(std::string_view word);
  uint64_t number_for(Place place);

  Numbers& numbers_;
  std::mt19937_64 random_;
  std::string values_;  // a pool that values are cut from
  std::vector<Piece> pieces_;
};

}  // namespace generator

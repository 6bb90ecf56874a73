// Commands as they are sent: what stands between the places is encoded once.
#include "bench/generator/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <stdexcept>

namespace generator {
namespace {

constexpr size_t kNumberDigits = 12;
constexpr size_t kValuePoolBytes = 4 << 20;
constexpr int kRounds = 4;

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 31)) * 0x7fb5d329728ea185;
  value = (value ^ (value >> 27)) * 0x81dadef4bc2dd44d;
  return value ^ (value >> 33);
}

// Whether the text begins with {name}.
bool is_place(std::string_view text) {
  const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 1);
  return text.front() == '{' && end != text.npos && end > 1 && text[end] == '}';
}

}  // namespace

Shuffle::Shuffle(uint64_t size)
    : size_(size), half_bits_(std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2)) {}

// A Feistel network over the next even power of two; whoever falls beside goes on walking.
uint64_t Shuffle::operator()(uint64_t number) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = number >> half_bits_, right = number & mask;
    for (int round = 1; round <= kRounds; ++round) {
      const uint64_t old = right;
      right = left ^ (mix(right + static_cast<uint64_t>(round) * 0x9e3779b97f4a7c15) & mask);
      left = old;
    }
    number = left << half_bits_ | right;
  } while (number >= size_);
  return number;
}

Template::Template(const std::vector<std::string>& words, Numbers& numbers, uint64_t seed)
    : numbers_(numbers), random_(seed), values_(kValuePoolBytes + numbers.value_bytes, '\0') {
  for (size_t at = 0; at + 8 <= values_.size(); at += 8) {
    const uint64_t bits = random_();
    std::copy_n(reinterpret_cast<const char*>(&bits), 8, values_.begin() + static_cast<long>(at));
  }
  pieces_.push_back({.text = fmt::format("*{}\r\n", words.size())});
  for (const std::string& word : words) compile(word);
}

void Template::compile(std::string_view word) {
  struct Name {
    std::string_view text;
    Place place;
  };
  constexpr Name kNames[] = {{"{random}", Place::kRandom},
                             {"{next}", Place::kNext},
                             {"{hot}", Place::kHot},
                             {"{value}", Place::kValue}};
  std::vector<Piece> own = {{}};
  size_t bytes = 0;
  while (!word.empty()) {
    const auto* const name =
        std::ranges::find_if(kNames, [&](const Name& each) { return word.starts_with(each.text); });
    if (name != std::end(kNames)) {
      own.back().place = name->place;
      own.push_back({});
      bytes += name->place == Place::kValue ? numbers_.value_bytes : kNumberDigits;
      word.remove_prefix(name->text.size());
      continue;
    }
    if (is_place(word)) throw std::invalid_argument(fmt::format("no such place: {}", word));
    own.back().text += word.front();
    word.remove_prefix(1);
    ++bytes;
  }
  own.front().text.insert(0, fmt::format("${}\r\n", bytes));
  own.back().text += "\r\n";
  // What follows the last place of the word before goes in front of this one.
  pieces_.back().text += own.front().text;
  pieces_.back().place = own.front().place;
  pieces_.insert(pieces_.end(), own.begin() + 1, own.end());
}

uint64_t Template::number_for(Place place) {
  switch (place) {
    case Place::kNext:
      return numbers_.order(numbers_.next.fetch_add(1, std::memory_order_relaxed) % numbers_.keys);
    case Place::kHot:
      return numbers_.order(random_() % numbers_.hot_keys);
    default:
      return random_() % numbers_.keys;
  }
}

void Template::append_to(std::string& out) {
  for (const Piece& piece : pieces_) {
    out += piece.text;
    if (piece.place == Place::kNone) continue;
    if (piece.place == Place::kValue) {
      out.append(values_, random_() % kValuePoolBytes, numbers_.value_bytes);
    } else {
      fmt::format_to(std::back_inserter(out), "{:012}", number_for(piece.place));
    }
  }
}

}  // namespace generator

// The parser on bytes that nobody has checked. Whatever they are, and however they are cut, it
// reads the same commands and ends with the same error; what it read, encoded, is read as itself.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "net/batch_pool.h"
#include "net/resp_parser.h"
#include "storage/check.h"
#include "tests/fuzz/targets.h"

namespace ingot::fuzz {
namespace {

using net::CommandBatch;
using net::RespParser;

using Commands = std::vector<std::vector<std::string>>;

// What becomes of arguments of a megabyte.
enum class Large : uint8_t { kGathered, kDiverted, kRefused };

class CollectingSink : public net::ArgumentSink {
 public:
  void write(std::string piece, std::move_only_function<void(bool)> ready) override {
    bytes += piece;
    ready(true);
  }
  std::string bytes;
};

// Reads as a connection does.
class Reading {
 public:
  Reading(net::ParseLimits limits, Large large) : limits_(limits), large_(large) {}

  void add(std::string_view bytes) {
    while (!bytes.empty() && error.empty()) {
      if (missing_ > 0) {
        const size_t n = std::min<uint64_t>(missing_, bytes.size());
        divert(std::string(bytes.substr(0, n)));
        bytes.remove_prefix(n);
        if (missing_ == 0) parse();
        continue;
      }
      const auto room = parser_.prepare(net::BatchPool::kSmallBytes);
      INGOT_CHECK(!room.empty());
      const size_t n = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), n);
      parser_.commit(n);
      bytes.remove_prefix(n);
      parse();
      check_memory();
    }
  }

  Commands commands;
  std::string error;

 private:
  void parse() {
    while (missing_ == 0) {
      const auto status = parser_.parse(limits_);
      if (parser_.has_commands()) keep(*parser_.take_batch());
      if (status == RespParser::Status::kError) error = parser_.error();
      if (status != RespParser::Status::kLargeArgument) break;
      begin_large();
    }
    parser_.release_if_empty();
  }

  void begin_large() {
    if (large_ == Large::kGathered) return parser_.gather();
    if (large_ == Large::kRefused) return parser_.refuse();
    missing_ = parser_.large_argument_bytes();
    sink_ = std::make_shared<CollectingSink>();
    parser_.divert(sink_);
    std::string at_hand;
    parser_.take_raw(missing_, at_hand);
    divert(std::move(at_hand));
  }

  void divert(std::string piece) {
    missing_ -= piece.size();
    sink_->write(std::move(piece), [](bool) {});
  }

  void keep(const CommandBatch& batch) {
    for (const net::Command& command : batch.commands) {
      INGOT_CHECK(!command.args.empty());
      INGOT_CHECK(!command.refused || command.args.size() == 1);
      auto& kept = commands.emplace_back(command.args.begin(), command.args.end());
      if (!command.sink) continue;
      INGOT_CHECK(kept.at(command.diverted_index).empty());
      kept[command.diverted_index] = static_cast<CollectingSink&>(*command.sink).bytes;
    }
  }

  // A length that was only announced costs nothing.
  void check_memory() const {
    INGOT_CHECK(parser_.capacity() <= 4 * (parser_.held_bytes() + net::BatchPool::kLargeBytes));
  }

  RespParser parser_;
  const net::ParseLimits limits_;
  const Large large_;
  uint64_t missing_ = 0;  // of the argument that is being diverted
  std::shared_ptr<CollectingSink> sink_;
};

// "\xff" and a byte n stand for n times 8 KB, so that a small input reaches large arguments.
std::string unfolded(std::string_view input) {
  constexpr size_t kRunBytes = 8 << 10;
  constexpr size_t kBytesMax = 2500 << 10;
  std::string bytes;
  for (size_t i = 0; i < input.size(); ++i) {
    const size_t run = i + 1 < input.size() ? kRunBytes * static_cast<uint8_t>(input[i + 1]) : 0;
    if (input[i] != '\xff' || bytes.size() + run > kBytesMax) {
      bytes += input[i];
    } else {
      bytes.append(run, 'x');
      ++i;
    }
  }
  return bytes;
}

Commands read_whole(std::string_view bytes, net::ParseLimits limits, Large large,
                    std::string* error) {
  Reading reading(limits, large);
  reading.add(bytes);
  *error = reading.error;
  return reading.commands;
}

std::string encode(const Commands& commands) {
  std::string bytes;
  for (const auto& command : commands) {
    bytes += "*" + std::to_string(command.size()) + "\r\n";
    for (const std::string& arg : command) {
      bytes += "$" + std::to_string(arg.size()) + "\r\n" + arg + "\r\n";
    }
  }
  return bytes;
}

// How long a line may be depends on what came with it.
bool is_about_a_long_line(std::string_view error) {
  return error.find("too big") != error.npos;
}

}  // namespace

void resp(std::string_view input) {
  if (input.size() < 2) return;
  const auto options = static_cast<uint8_t>(input[0]);
  uint32_t chance = static_cast<uint8_t>(input[1]);
  const net::ParseLimits limits{.bulk_bytes_max = 2 << 20, .authenticated = options % 2 == 0};
  const Large large = static_cast<Large>(options / 2 % 3);
  const bool folded = options >= 128;  // such inputs are slow
  input.remove_prefix(2);
  const std::string bytes = folded ? unfolded(input) : std::string(input);

  std::string error;
  const Commands whole = read_whole(
      bytes, limits, large == Large::kRefused ? Large::kRefused : Large::kGathered, &error);

  Reading pieces(limits, large);
  // Small pieces of long inputs would take seconds.
  const size_t piece_max = std::max<size_t>(9, bytes.size() / 512);
  for (std::string_view rest = bytes; !rest.empty() && pieces.error.empty();) {
    chance = chance * 1664525 + 1013904223;
    const size_t n = std::min(rest.size(), 1 + (chance >> 8) % piece_max);
    pieces.add(rest.substr(0, n));
    rest.remove_prefix(n);
  }
  if (is_about_a_long_line(error) || is_about_a_long_line(pieces.error)) {
    const size_t both = std::min(whole.size(), pieces.commands.size());
    INGOT_CHECK(std::equal(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(both),
                           pieces.commands.begin()));
  } else {
    INGOT_CHECK(pieces.error == error);
    INGOT_CHECK(pieces.commands == whole);
  }

  if (large == Large::kRefused || folded) return;
  const Commands again =
      read_whole(encode(whole), {.bulk_bytes_max = UINT64_MAX}, Large::kGathered, &error);
  INGOT_CHECK(error.empty());
  INGOT_CHECK(again == whole);
}

}  // namespace ingot::fuzz

// LCS: the longest common subsequence of two strings.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/settings/config.h"
#include "src/types/string_value.h"

namespace ingot::commands {
namespace {

using types::Record;

struct Options {
  bool length_only = false;
  bool indexes = false;
  bool with_match_length = false;
  int64_t min_match_length = 0;
};

// Answers the error itself.
bool parse_options(ReadContext& ctx, Args args, Options* out) {
  ArgReader reader(args, 3);
  while (reader.more()) {
    if (reader.word("minmatchlen", 1)) {
      out->min_match_length = reader.integer();
    } else if (!reader.flag({{"idx", &out->indexes},
                             {"len", &out->length_only},
                             {"withmatchlen", &out->with_match_length}})) {
      reader.fail(contract::error::kSyntax);
    }
  }
  if (out->indexes && out->length_only) {
    reader.fail("ERR If you want both the length and indexes, please just use IDX.");
  }
  if (reader.failed()) ctx.reply.error(reader.error());
  return !reader.failed();
}

// The table of lengths of the common subsequences of all pairs of prefixes, of which the walk back
// needs one bit for each pair only: whether leaving out the last byte of `a` gives a longer one
// than leaving out the last byte of `b`.
class Lcs {
 public:
  Lcs(std::string_view a, std::string_view b, bool length_only) : a_(a), b_(b) {
    if (!length_only) drop_from_a_.resize(a.size() * b.size());
    std::vector<uint32_t> row(b.size() + 1, 0);  // for a's prefix so far, by b's prefix
    for (size_t i = 0; i < a.size(); ++i) {
      uint32_t diagonal = 0;
      for (size_t j = 0; j < b.size(); ++j) {
        const uint32_t without_a = row[j + 1];
        const uint32_t without_b = row[j];
        if (a[i] == b[j]) {
          row[j + 1] = diagonal + 1;
        } else {
          row[j + 1] = std::max(without_a, without_b);
          if (!length_only && without_a > without_b) drop_from_a_[i * b.size() + j] = true;
        }
        diagonal = without_a;
      }
    }
    length_ = row.back();
  }

  uint32_t length() const { return length_; }

  // Calls `matched(i, j)` for the pairs of equal bytes that form the subsequence, last one first.
  template <typename Matched>
  void walk_back(Matched matched) const {
    size_t i = a_.size();
    size_t j = b_.size();
    while (i > 0 && j > 0) {
      if (a_[i - 1] == b_[j - 1]) {
        matched(--i, --j);
      } else if (drop_from_a_[(i - 1) * b_.size() + (j - 1)]) {
        --i;
      } else {
        --j;
      }
    }
  }

 private:
  std::string_view a_;
  std::string_view b_;
  std::vector<bool> drop_from_a_;
  uint32_t length_ = 0;
};

// Bytes of `a` from `a`, and of `b` from `b` on, that are equal.
struct Match {
  size_t a;
  size_t b;
  size_t length;
};

std::vector<Match> matches(const Lcs& lcs) {
  std::vector<Match> found;
  lcs.walk_back([&](size_t i, size_t j) {
    if (!found.empty() && found.back().a == i + 1 && found.back().b == j + 1) {
      found.back() = {.a = i, .b = j, .length = found.back().length + 1};
    } else {
      found.push_back({.a = i, .b = j, .length = 1});
    }
  });
  return found;
}

void reply_indexes(ReadContext& ctx, const Lcs& lcs, const Options& options) {
  std::vector<Match> found = matches(lcs);
  std::erase_if(found, [&](const Match& match) {
    return static_cast<int64_t>(match.length) < options.min_match_length;
  });
  ctx.reply.map(2);
  ctx.reply.bulk("matches");
  ctx.reply.array(found.size());
  auto reply_range = [&](size_t begin, size_t length) {
    ctx.reply.array(2);
    ctx.reply.integer(static_cast<int64_t>(begin));
    ctx.reply.integer(static_cast<int64_t>(begin + length - 1));
  };
  for (const Match& match : found) {
    ctx.reply.array(options.with_match_length ? 3 : 2);
    reply_range(match.a, match.length);
    reply_range(match.b, match.length);
    if (options.with_match_length) ctx.reply.integer(static_cast<int64_t>(match.length));
  }
  ctx.reply.bulk("len");
  ctx.reply.integer(lcs.length());
}

void lcs_command(ReadContext& ctx, Args args) {
  Record a, b;
  const bool found_a = ctx.keys.find(ctx.db, args[1], &a);
  const bool found_b = ctx.keys.find(ctx.db, args[2], &b);
  if ((found_a && !types::is_string(a)) || (found_b && !types::is_string(b))) {
    return ctx.reply.error("ERR The specified keys must contain string values");
  }
  Options options;
  if (!parse_options(ctx, args, &options)) return;
  const uint64_t a_length = found_a ? types::string_length(a) : 0;
  const uint64_t b_length = found_b ? types::string_length(b) : 0;
  // Redis' limit, for the table that Redis would need.
  const auto table_bytes_max = static_cast<uint64_t>(ctx.config.settings()->proto_max_bulk_len);
  if ((a_length + 1) * (b_length + 1) > table_bytes_max / sizeof(uint32_t)) {
    return ctx.reply.error(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
  }
  constexpr uint64_t kPairsInElement = 64;  // that take as long as reading an element does
  if (!ctx.keys.data().begin_walk(a_length * b_length / kPairsInElement)) return;
  std::string a_bytes, b_bytes;
  if (a_length > 0 && b_length > 0) {
    types::read_string(ctx.keys.data(), a, 0, a_length, &a_bytes);
    types::read_string(ctx.keys.data(), b, 0, b_length, &b_bytes);
  }
  const Lcs lcs(a_bytes, b_bytes, options.length_only);
  if (options.indexes) return reply_indexes(ctx, lcs, options);
  if (options.length_only) return ctx.reply.integer(lcs.length());
  std::string common(lcs.length(), '\0');
  size_t left = common.size();
  lcs.walk_back([&](size_t i, size_t) { common[--left] = a_bytes[i]; });
  ctx.reply.bulk(common);
}

constexpr CommandRow kTable[] = {
    {.name = "lcs",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {contract::keys_between(1, 1, 1, key::kRo | key::kAccess)},
     .since = "7.0.0",
     .complexity = "O(N*M) with N and M the lengths of the strings",
     .summary = "Find the longest sequence of bytes that two strings have in common",
     .arguments = "key1:key#0 key2:key#0 len:pure-token=LEN? idx:pure-token=IDX? "
                  "len:integer=MINMATCHLEN? withmatchlen:pure-token=WITHMATCHLEN?",
     .handler = lcs_command,
     .scans = true},
};
constexpr auto kRows = contract::family(kStringFamily, kTable);

}  // namespace

std::span<const CommandRow> lcs_rows() {
  return kRows;
}

}  // namespace ingot::commands

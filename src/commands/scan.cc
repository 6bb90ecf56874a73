// Walking the keys: SCAN, KEYS, RANDOMKEY. A pattern with a literal beginning seeks to it.
#include <algorithm>
#include <optional>
#include <random>

#include "src/command/args.h"
#include "src/command/context.h"
#include "src/command/glob.h"
#include "src/commands/families.h"
#include "src/exec/services.h"
#include "src/types/key_cursor.h"
#include "src/types/value_type.h"

namespace ingot::commands {
namespace {

namespace acl = command::acl;
namespace flag = command::flag;
using command::ArgReader;
using command::Args;
using command::CommandRow;
using command::ReadContext;
using storage::Space;
using types::Record;

// The keys of a database that begin with `prefix`, in order, expired ones included.
class KeyWalk {
 public:
  KeyWalk(ReadContext& ctx, std::string_view prefix)
      : data_(ctx.keys.data()), keyspace_(ctx.keys.keyspace(ctx.db)) {
    begin_ = storage::meta_key(keyspace_, prefix);
    cursor_ = data_.cursor(Space::kMeta, begin_, end_of_prefix());
  }
  ~KeyWalk() { data_.check(*cursor_); }
  KeyWalk(const KeyWalk&) = delete;
  KeyWalk& operator=(const KeyWalk&) = delete;

  void seek_first() { cursor_->seek(begin_); }
  void seek_last() { cursor_->seek_for_prev(end_of_prefix()); }
  // To the first key behind `key` (which may lie before the prefix).
  void seek_behind(std::string_view key) {
    std::string from = storage::meta_key(keyspace_, key);
    from.push_back('\0');
    cursor_->seek(std::max(from, begin_));
  }
  void seek(std::string_view key) { cursor_->seek(storage::meta_key(keyspace_, key)); }
  bool valid() const { return cursor_->valid(); }
  void next() { cursor_->next(); }
  std::string_view key() const { return storage::user_key_of(cursor_->key()); }
  bool load(Record* record) const { return record->assign(std::string(cursor_->value())); }

 private:
  // The first key that no longer begins with the prefix.
  std::string end_of_prefix() const {
    std::string end = begin_;
    while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
    if (!end.empty()) end.back() = static_cast<char>(end.back() + 1);
    return end;
  }

  storage::Reader& data_;
  storage::KeyspaceId keyspace_;
  std::string begin_;
  std::unique_ptr<storage::Cursor> cursor_;
};

bool live(ReadContext& ctx, const KeyWalk& walk, Record* record) {
  return walk.load(record) && !ctx.keys.expired(*record);
}

void keys(ReadContext& ctx, Args args) {
  std::string_view pattern = args[1];
  std::vector<std::string> found;
  KeyWalk walk(ctx, command::literal_prefix(pattern));
  Record record;
  for (walk.seek_first(); walk.valid(); walk.next()) {
    if (command::glob_matches(pattern, walk.key()) && live(ctx, walk, &record)) {
      found.emplace_back(walk.key());
    }
  }
  ctx.reply.array(found.size());
  for (const std::string& name : found) ctx.reply.bulk(name);
}

struct ScanOptions {
  int64_t count = 10;
  std::string_view pattern = "*";
  std::optional<std::string_view> type;
};

bool read_scan_options(ReadContext& ctx, Args args, ScanOptions* options) {
  ArgReader reader(args, 2);
  while (reader.more()) {
    if (reader.left() >= 2 && reader.word("count")) {
      options->count = reader.integer();
      if (!reader.failed() && options->count < 1) reader.fail(command::error::kSyntax);
    } else if (reader.left() >= 2 && reader.word("match")) {
      options->pattern = reader.text();
    } else if (reader.left() >= 2 && reader.word("type")) {
      options->type = reader.text();
    } else {
      reader.fail(command::error::kSyntax);
    }
  }
  if (reader.failed()) ctx.reply.error(reader.error());
  return !reader.failed();
}

// Where a cursor stands: the keyspace that it was made for, and the last key that it visited.
std::string position_of(storage::KeyspaceId keyspace, std::string_view key) {
  return storage::meta_key(keyspace, key);
}

// As Redis reads it: digits, perhaps after a sign, of an unsigned long; nothing is 0.
std::optional<uint64_t> parse_cursor(std::string_view text) {
  if (!text.empty() && std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  std::string copy(text);
  char* end = nullptr;
  errno = 0;
  uint64_t cursor = std::strtoull(copy.c_str(), &end, 10);
  if (errno == ERANGE || end != copy.c_str() + copy.size()) return std::nullopt;
  return cursor;
}

void scan(ReadContext& ctx, Args args) {
  std::optional<uint64_t> cursor = parse_cursor(args[1]);
  ScanOptions options;
  if (!cursor) return ctx.reply.error("ERR invalid cursor");
  if (!read_scan_options(ctx, args, &options)) return;
  storage::KeyspaceId keyspace = ctx.keys.keyspace(ctx.db);
  KeyWalk walk(ctx, command::literal_prefix(options.pattern));
  if (*cursor == 0) {
    walk.seek_first();
  } else {
    std::optional<std::string> position = ctx.services.cursors.find(*cursor);
    if (!position) return ctx.reply.error("ERR invalid cursor");
    // A flush or a swap in between: what is left of that iteration is nothing.
    bool same = position->starts_with(position_of(keyspace, {}));
    if (same) walk.seek_behind(storage::user_key_of(*position));
    if (!same) walk.seek_last();
    if (!same && walk.valid()) walk.next();
  }
  std::vector<std::string> found;
  std::string last;
  Record record;
  for (int64_t visited = 0; walk.valid() && visited < options.count; ++visited, walk.next()) {
    last = walk.key();
    if (!live(ctx, walk, &record) || !command::glob_matches(options.pattern, last)) continue;
    if (options.type &&
        !command::equals_ignore_case(*options.type, types::type_name(record.type()))) {
      continue;
    }
    found.push_back(last);
  }
  uint64_t next = walk.valid() ? ctx.services.cursors.add(position_of(keyspace, last)) : 0;
  ctx.reply.array(2);
  ctx.reply.bulk(std::to_string(next));
  ctx.reply.array(found.size());
  for (const std::string& name : found) ctx.reply.bulk(name);
}

// A key between two others, at random in byte order: shares their common beginning.
std::string random_between(std::string_view low, std::string_view high, std::mt19937_64& random) {
  size_t same = 0;
  while (same < low.size() && same < high.size() && low[same] == high[same]) ++same;
  auto value = [same](std::string_view key) {
    uint64_t number = 0;
    for (size_t i = same; i < same + 7; ++i) {
      number = number << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
    }
    return number;
  };
  uint64_t chosen = std::uniform_int_distribution<uint64_t>(
      value(low), std::max(value(low), value(high)))(random);
  std::string key(low.substr(0, same));
  for (int shift = 48; shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(chosen >> shift & 0xff));
  }
  return key;
}

// Not uniform: a key behind a gap in the order is likelier. The random steps even that out for
// keys that are alike; no scan and no index is needed.
void randomkey(ReadContext& ctx, Args) {
  constexpr int kTries = 16;
  constexpr int kStepsMax = 64;
  thread_local std::mt19937_64 random{std::random_device{}()};
  KeyWalk walk(ctx, {});
  walk.seek_first();
  if (!walk.valid()) return ctx.reply.null();
  std::string first(walk.key());
  walk.seek_last();
  std::string last(walk.valid() ? walk.key() : first);
  Record record;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    walk.seek(random_between(first, last, random));
    if (!walk.valid()) walk.seek_first();
    for (uint64_t steps = random() % kStepsMax; steps > 0; --steps) {
      walk.next();
      if (!walk.valid()) walk.seek_first();
    }
    if (live(ctx, walk, &record)) return ctx.reply.bulk(walk.key());
  }
  // Nearly all have expired: the first that has not.
  for (walk.seek_first(); walk.valid(); walk.next()) {
    if (live(ctx, walk, &record)) return ctx.reply.bulk(walk.key());
  }
  ctx.reply.null();
}

constexpr CommandRow kRows[] = {
    {.name = "keys",
     .arity = 2,
     .flags = flag::kReadonly,
     .acl = acl::kKeyspace | acl::kRead | acl::kSlow | acl::kDangerous,
     .group = "generic",
     .since = "1.0.0",
     .complexity = "O(N) in the keys that begin as the pattern does",
     .summary = "The keys that match a pattern",
     .tips = "request_policy:all_shards,nondeterministic_output_order",
     .arguments = "pattern:pattern",
     .handler = keys,
     .scans = true},
    {.name = "randomkey",
     .arity = 1,
     .flags = flag::kReadonly,
     .acl = acl::kKeyspace | acl::kRead | acl::kSlow,
     .group = "generic",
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Some key of the database",
     .tips = "request_policy:all_shards,nondeterministic_output",
     .handler = randomkey,
     .scans = true},
    {.name = "scan",
     .arity = -2,
     .flags = flag::kReadonly,
     .acl = acl::kKeyspace | acl::kRead | acl::kSlow,
     .group = "generic",
     .since = "2.8.0",
     .complexity = "O(COUNT) for each call",
     .summary = "Walk the keys piece by piece",
     .history = "6.0.0: Added the `TYPE` subcommand.",
     .tips = "nondeterministic_output,request_policy:special",
     .arguments =
         "cursor:integer pattern:pattern=MATCH? count:integer=COUNT? type:string=TYPE@6.0.0?",
     .handler = scan,
     .scans = true},
};

}  // namespace

std::span<const CommandRow> scan_rows() {
  return kRows;
}

}  // namespace ingot::commands

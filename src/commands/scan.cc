// Walking the keys: SCAN, KEYS, RANDOMKEY. A pattern with a literal beginning seeks to it.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/element_scan.h"
#include "src/commands/families.h"
#include "src/contract/glob.h"
#include "src/contract/thresholds.h"
#include "src/data/piece_source.h"
#include "src/types/key_cursor.h"
#include "src/types/key_walk.h"
#include "src/types/value_type.h"

namespace ingot::commands {
namespace {

using storage::Metadata;
using types::KeyWalk;
using types::Record;

// Names of keys, close together.
class Names {
 public:
  void add(std::string_view name) {
    bytes_.append(name);
    ends_.push_back(bytes_.size());
  }
  size_t bytes() const { return bytes_.size(); }
  void reply_to(contract::ReplySink& reply) const {
    reply.array(ends_.size());
    size_t begin = 0;
    for (const size_t end : ends_) {
      reply.bulk(std::string_view(bytes_).substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

class Pattern {
 public:
  explicit Pattern(std::string_view pattern)
      : pattern_(pattern), prefix_(contract::literal_prefix(pattern)) {}

  // What matches begins with this, or is it.
  const std::string& prefix() const { return prefix_.text; }
  bool is_literal() const { return prefix_.is_whole; }
  bool matches(std::string_view name) const {
    return pattern_ == "*" || contract::glob_matches(pattern_, name);
  }

 private:
  std::string_view pattern_;
  contract::LiteralPrefix prefix_;
};

// False for a key that has expired.
bool read_live(ReadContext& ctx, const KeyWalk& walk, Metadata* metadata) {
  return walk.read(metadata) && (metadata->expire_ms == 0 || metadata->expire_ms > ctx.now_ms());
}

// The matching names once more, from the same view, while the client takes them.
void stream_names(ReadContext& ctx, std::string_view text) {
  const storage::KeyspaceId keyspace = ctx.keys.keyspace(ctx.db);
  auto encode = [glob = std::string(text), now_ms = ctx.now_ms()](
                    std::string_view key, std::string_view record, std::string* out) {
    Metadata metadata;
    const std::string_view name = storage::user_key_of(key);
    if (!Pattern(glob).matches(name) || !storage::decode_metadata(record, &metadata)) return;
    if (metadata.expire_ms != 0 && metadata.expire_ms <= now_ms) return;
    net::RespWriter(*out, 2).bulk(name);
  };
  data::RecordRange range{.space = storage::Space::kMeta,
                          .lower = storage::meta_key(keyspace, Pattern(text).prefix()),
                          .upper = storage::meta_key_end(keyspace)};
  ctx.reply.elements(std::make_unique<data::PieceSource>(
      ctx.data, ctx.view, data::read_range(std::move(range), std::move(encode)),
      data::PieceSource::Use{.work = data::Work::kLong}));  // few may match
}

void keys(ReadContext& ctx, Args args) {
  const Pattern pattern(args[1]);
  Names found;
  if (pattern.is_literal()) {
    Record record;
    if (ctx.keys.peek(ctx.db, pattern.prefix(), &record)) found.add(pattern.prefix());
    return found.reply_to(ctx.reply);
  }
  if (!ctx.keys.data().begin_walk()) return;
  KeyWalk walk(ctx.keys.data(), ctx.keys.keyspace(ctx.db), pattern.prefix());
  Metadata metadata;
  uint64_t count = 0;
  for (walk.seek_first(); walk.valid(); walk.next()) {
    if (!pattern.matches(walk.key()) || !read_live(ctx, walk, &metadata)) continue;
    ++count;
    if (ctx.view && found.bytes() > contract::kHeldToCountBytes) {  // only counted, for the header
      continue;
    }
    found.add(walk.key());
    if (!ctx.reply.may_hold(found.bytes())) return;
  }
  if (!ctx.view || found.bytes() <= contract::kHeldToCountBytes) return found.reply_to(ctx.reply);
  ctx.reply.array(count);
  stream_names(ctx, args[1]);
}

// Goes where the cursor stands. False when it is not of this database's keys.
bool resume(ReadContext& ctx, KeyWalk& walk, uint64_t cursor) {
  if (cursor == 0) {
    walk.seek_first();
    return true;
  }
  const std::optional<std::string> position = ctx.server.cursors().find(cursor);
  if (!position || position->size() < sizeof(storage::KeyspaceId)) return false;
  const storage::KeyspaceId keyspace = storage::read_be32(*position);
  if (keyspace == ctx.keys.keyspace(ctx.db)) {
    walk.seek_behind(storage::user_key_of(*position));
    return true;
  }
  // Where the keys were flushed, none of them is left: the walk stays at its end.
  return std::ranges::find(ctx.keys.databases(), keyspace) == ctx.keys.databases().end();
}

void scan(ReadContext& ctx, Args args) {
  const std::optional<uint64_t> cursor = parse_cursor(args[1]);
  if (!cursor) return ctx.reply.error(kInvalidCursor);
  const auto options = read_scan_options(ctx.reply, args, ScanOf::kKeys);
  if (!options) return;
  if (!ctx.keys.data().begin_walk(options->count)) return;
  const Pattern pattern(options->pattern);
  const storage::KeyspaceId keyspace = ctx.keys.keyspace(ctx.db);
  KeyWalk walk(ctx.keys.data(), keyspace, pattern.prefix());
  if (!resume(ctx, walk, *cursor)) return ctx.reply.error(kInvalidCursor);

  Names found;
  std::string last;
  Metadata metadata;
  for (uint64_t visited = 0;
       walk.valid() && visited < options->count && found.bytes() < contract::kScanBytesMax;
       ++visited, walk.next()) {
    last = walk.key();
    if (!pattern.matches(last) || !read_live(ctx, walk, &metadata)) continue;
    const std::string_view type = types::type_name(metadata.type);
    if (!options->type || contract::equals_ignore_case(*options->type, type)) found.add(last);
  }
  if (ctx.keys.data().failed()) return;
  uint64_t next = 0;
  if (walk.valid()) {
    next = ctx.server.cursors().add(storage::meta_key(keyspace, last), ctx.client_id, *cursor);
  } else {
    ctx.server.cursors().end(*cursor);
  }
  ctx.reply.array(2);
  ctx.reply.bulk(std::to_string(next));
  found.reply_to(ctx.reply);
}

void randomkey(ReadContext& ctx, Args) {
  constexpr int kTries = 16;
  thread_local std::mt19937_64 random{std::random_device{}()};
  KeyWalk walk(ctx.keys.data(), ctx.keys.keyspace(ctx.db), {});
  Metadata metadata;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    types::seek_random(walk, random);
    if (!walk.valid()) return ctx.reply.null();
    if (read_live(ctx, walk, &metadata)) return ctx.reply.bulk(walk.key());
  }
  // Most have expired: the next one that has not.
  const std::string start(walk.key());
  for (; walk.valid(); walk.next()) {
    if (read_live(ctx, walk, &metadata)) return ctx.reply.bulk(walk.key());
  }
  for (walk.seek_first(); walk.valid() && walk.key() < start; walk.next()) {
    if (read_live(ctx, walk, &metadata)) return ctx.reply.bulk(walk.key());
  }
  ctx.reply.null();
}

constexpr CommandRow kTable[] = {
    {.name = "keys",
     .arity = 2,
     .flags = flag::kReadonly,
     .acl = acl::kDangerous,
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
     .since = "1.0.0",
     .complexity = "O(1)",
     .summary = "Some key of the database",
     .tips = "request_policy:all_shards,nondeterministic_output",
     .handler = randomkey,
     .scans = true},
    {.name = "scan",
     .arity = -2,
     .flags = flag::kReadonly,
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
constexpr auto kRows = contract::family(kGenericFamily, kTable);

}  // namespace

std::span<const CommandRow> scan_rows() {
  return kRows;
}

}  // namespace ingot::commands

// Streams of entries: XADD, XDEL, XLEN, XRANGE, XREVRANGE, XSETID, XTRIM.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/large_removal.h"
#include "src/commands/stream_key.h"
#include "src/settings/config.h"

namespace ingot::commands {
namespace {

using types::StreamId;
using types::StreamWriter;

// The options of XADD and XTRIM.
struct TrimOptions {
  std::optional<uint64_t> length;
  std::optional<StreamId> min_id;
  std::optional<uint64_t> limit;
  bool approximate = false;
  size_t threshold_left = 0;   // so many arguments from its threshold on
  bool only_existing = false;  // NOMKSTREAM

  bool given() const { return length || min_id; }
};

enum class Read : uint8_t { kOption, kNone, kError };  // after kError it has been answered

// Reads what stands behind MAXLEN or MINID.
Read read_threshold(ReplySink& reply, ArgReader& reader, bool by_id, TrimOptions* options) {
  if (options->given()) {
    reply.error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
    return Read::kError;
  }
  options->approximate = reader.word("~", 1);
  if (!options->approximate) (void)reader.word("=", 1);
  options->threshold_left = reader.left();
  if (by_id) {
    options->min_id = stream_id_argument(reply, reader.text());
    return options->min_id ? Read::kOption : Read::kError;
  }
  const int64_t length = reader.integer();
  if (!reader.failed() && length < 0) reader.fail("ERR The MAXLEN argument must be >= 0.");
  if (reader.failed()) reply.error(reader.error());
  options->length = static_cast<uint64_t>(length);
  return reader.failed() ? Read::kError : Read::kOption;
}

Read read_option(ReplySink& reply, ArgReader& reader, bool adding, TrimOptions* options) {
  if (reader.word("maxlen", 1)) return read_threshold(reply, reader, false, options);
  if (reader.word("minid", 1)) return read_threshold(reply, reader, true, options);
  if (adding && reader.word("nomkstream")) {
    options->only_existing = true;
    return Read::kOption;
  }
  if (!reader.word("limit", 1)) return Read::kNone;
  const int64_t limit = reader.integer();
  if (!reader.failed() && limit < 0) reader.fail("ERR The LIMIT argument must be >= 0.");
  if (reader.failed()) reply.error(reader.error());
  options->limit = static_cast<uint64_t>(limit);
  return reader.failed() ? Read::kError : Read::kOption;
}

bool consistent(ReplySink& reply, const TrimOptions& options, bool adding) {
  if (options.limit.value_or(0) != 0 && !options.given()) {
    reply.error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  } else if (!adding && !options.given()) {
    reply.error("ERR syntax error, XTRIM must be called with a trimming strategy");
  } else if (options.limit && !options.approximate) {
    reply.error("ERR syntax error, LIMIT cannot be used without the special ~ option");
  }
  return !reply.erred();
}

types::StreamTrim trim_of(WriteContext& ctx, const TrimOptions& options) {
  types::StreamTrim trim{.length = options.length.value_or(0), .min_id = options.min_id};
  if (options.approximate) {
    // Redis removes whole nodes; ours are as many entries as one of its nodes may have.
    constexpr uint64_t kStep = 100;
    constexpr uint64_t kLimitMax = 1'000'000;
    const auto node = static_cast<uint64_t>(ctx.config.settings()->stream_node_max_entries);
    trim.step = node == 0 ? kStep : node;
    const uint64_t limit =
        options.limit.value_or(node == 0 ? 100 * kStep : std::min(100 * node, kLimitMax));
    if (limit != 0) trim.at_most = limit;
  }
  return trim;
}

// How many entries may go, or at least so many, when they are more than the writer removes.
std::optional<uint64_t> large_trim(const WriteContext& ctx, const types::StreamReader& stream,
                                   const types::Record& record, const types::StreamTrim& trim) {
  constexpr uint64_t kMost = contract::kTrimmedByWriter;
  if (!is_large_removal(ctx, record, std::min(stream.length(), trim.at_most), kMost)) return {};
  uint64_t going = 0;
  if (trim.min_id) {
    stream.walk_trimmed(trim, [&](StreamId) { return ++going <= kMost; });
  } else if (stream.length() > trim.length) {
    going = std::min(stream.length() - trim.length, trim.at_most);
  }
  return is_large_removal(ctx, record, going, kMost) ? std::optional(going) : std::nullopt;
}

// How many entries went; nothing: return at once.
std::optional<uint64_t> trim_beside(WriteContext& ctx, std::string_view key,
                                    const types::Record& record, uint64_t going,
                                    const types::StreamTrim& trim) {
  const auto take = [db = ctx.db, key, trim,
                     inline_max_bytes = ctx.config.settings()->inline_max_bytes](
                        const data::Taking& here) -> std::optional<data::TakenCount> {
    StreamWriter stream(here.keys, db, key, &here.before, inline_max_bytes);
    uint64_t found = 0;
    stream.walk_trimmed(trim,
                        [&](StreamId) { return ++found <= contract::kRemovalsRepeatedByWriter; });
    if (found > contract::kRemovalsRepeatedByWriter) return std::nullopt;
    const uint64_t gone = stream.trim(trim);
    if (here.is_too_much()) return std::nullopt;
    stream.finish(types::Touch::kModified);
    return data::TakenCount{.count = gone};
  };
  const auto rest = leave_rest(
      ctx, key, record, going, take,
      [trim](types::KeyReader& keys, const types::Record& from, const types::PutElement& put,
             data::SpillSort&) { return types::rest_of_stream(keys.data(), from, trim, put); });
  return rest ? std::optional(rest->value.changes) : std::nullopt;
}

// How many entries were trimmed.
uint64_t add_entry(StreamWriter& stream, StreamId id, Args fields,
                   const std::optional<types::StreamTrim>& trim) {
  stream.add(id, fields);
  const uint64_t gone = trim ? stream.trim(*trim) : 0;
  stream.finish(types::Touch::kModified);
  return gone;
}

struct WantedId {
  std::optional<uint64_t> ms;   // nothing: now
  std::optional<uint64_t> seq;  // nothing: the next
};

// The ID that a new entry gets; nothing when the error has been answered.
std::optional<StreamId> next_id(WriteContext& ctx, const types::StreamNotes& notes,
                                const WantedId& wanted) {
  if (notes.last == types::kStreamIdMax) {
    ctx.reply.error("ERR The stream has exhausted the last possible ID, unable to add more items");
    return std::nullopt;
  }
  const StreamId behind = *types::id_after(notes.last);
  std::optional<StreamId> id;
  if (wanted.seq) {
    id = {*wanted.ms, *wanted.seq};
  } else if (wanted.ms) {
    id = *wanted.ms == notes.last.ms ? behind : StreamId{*wanted.ms, 0};
    if (id->ms != *wanted.ms) {
      ctx.reply.error("ERR Elements are too large to be stored");  // sic
      return std::nullopt;
    }
  } else {
    id = std::max(behind, StreamId{static_cast<uint64_t>(ctx.now_ms()), 0});
  }
  if (*id > notes.last) return id;
  ctx.reply.error(
      "ERR The ID specified in XADD is equal or smaller than the target stream top item");
  return std::nullopt;
}

std::optional<WantedId> wanted_id(ReplySink& reply, std::string_view text) {
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos && text.substr(dash) == "-*") {
    const auto id = stream_id_argument(reply, text.substr(0, dash));
    return id ? std::optional(WantedId{.ms = id->ms}) : std::nullopt;
  }
  const auto id = stream_id_argument(reply, text);
  return id ? std::optional(WantedId{.ms = id->ms, .seq = id->seq}) : std::nullopt;
}

// How far a stream was trimmed, exactly: elsewhere its nodes would be others.
std::string told_threshold(const types::StreamReader& stream, const TrimOptions& options) {
  if (options.length) return std::to_string(stream.length());
  return types::stream_id_text(stream.length() == 0 ? types::kStreamIdMax : stream.notes().first);
}

// The words with an exact trim, and the ID of a new entry at words[id_at].
void tell_stream(WriteContext& ctx, Args args, const types::StreamReader& stream,
                 const TrimOptions& options, size_t id_at = 0, StreamId id = {}) {
  std::vector<std::string_view> words(args.begin(), args.end());
  std::string threshold;
  if (options.given() && options.approximate) {
    threshold = told_threshold(stream, options);
    const size_t at = words.size() - options.threshold_left;
    words[at - 1] = "=";
    words[at] = threshold;
  }
  const std::string entry = types::stream_id_text(id);
  if (id_at != 0) words[id_at] = entry;
  ctx.tell(words);
}

void xadd(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  TrimOptions options;
  WantedId wanted;
  while (reader.more() && !reader.word("*")) {
    const Read read = read_option(ctx.reply, reader, /*adding=*/true, &options);
    if (read == Read::kError) return;
    if (read == Read::kOption) continue;
    const auto id = wanted_id(ctx.reply, reader.text());
    if (!id) return;
    wanted = *id;
    break;
  }
  if (!consistent(ctx.reply, options, /*adding=*/true)) return;
  const Args fields = reader.rest();
  const size_t id_at = args.size() - fields.size() - 1;
  if (fields.empty() || fields.size() % 2 != 0) {
    return ctx.reply.error(contract::wrong_arity_error("xadd"));
  }
  if (wanted.ms == 0 && wanted.seq == 0) {
    return ctx.reply.error("ERR The ID specified in XADD must be greater than 0-0");
  }
  auto stream = open_stream(ctx, args[1]);
  if (!stream) return;
  if (!stream.exists() && options.only_existing) return ctx.reply.null();
  const auto id = next_id(ctx, stream->notes(), wanted);
  if (!id) return;
  types::StreamTrim trim = trim_of(ctx, options);
  uint64_t gone = 0;
  const auto going =
      options.given() ? large_trim(ctx, *stream, stream.record(), trim) : std::nullopt;
  if (going) {
    // What is there already, beside the writer; then the new entry as ever.
    types::StreamTrim earlier = trim;
    if (earlier.length > 0) --earlier.length;
    const auto beside = trim_beside(ctx, args[1], stream.record(), *going, earlier);
    if (!beside) return;
    gone = *beside;
    trim.at_most -= gone;
    auto rest = open_stream(ctx, args[1]);
    gone += add_entry(*rest, *id, fields, trim);
    if (ctx.tells()) tell_stream(ctx, args, *rest, options, id_at, *id);
  } else {
    gone = add_entry(*stream, *id, fields, options.given() ? std::optional(trim) : std::nullopt);
    if (ctx.tells()) tell_stream(ctx, args, *stream, options, id_at, *id);
  }
  ctx.keys.notify(notify::kStream, "xadd", ctx.db, args[1]);
  if (gone != 0) ctx.keys.notify(notify::kStream, "xtrim", ctx.db, args[1]);
  reply_id(ctx.reply, *id);
}

void xtrim(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  TrimOptions options;
  while (reader.more()) {
    const Read read = read_option(ctx.reply, reader, /*adding=*/false, &options);
    if (read == Read::kError) return;
    if (read == Read::kNone) return ctx.reply.error(contract::error::kSyntax);
  }
  if (!consistent(ctx.reply, options, /*adding=*/false)) return;
  auto stream = open_stream(ctx, args[1]);
  if (!stream) return;
  if (!stream.exists()) return ctx.reply.integer(0);
  const types::StreamTrim trim = trim_of(ctx, options);
  uint64_t gone = 0;
  if (const auto going = large_trim(ctx, *stream, stream.record(), trim)) {
    const auto beside = trim_beside(ctx, args[1], stream.record(), *going, trim);
    if (!beside) return;
    gone = *beside;
    const auto rest = read_stream(ctx, args[1]);
    if (gone != 0 && ctx.tells()) tell_stream(ctx, args, *rest, options);
  } else {
    gone = stream->trim(trim);
    stream->finish(types::Touch::kModified);
    if (gone != 0 && ctx.tells()) tell_stream(ctx, args, *stream, options);
  }
  ctx.changes = gone;
  if (gone != 0) ctx.keys.notify(notify::kStream, "xtrim", ctx.db, args[1]);
  ctx.reply.integer(static_cast<int64_t>(gone));
}

void xdel(WriteContext& ctx, Args args) {
  auto stream = open_stream(ctx, args[1]);
  if (!stream) return;
  if (!stream.exists()) return ctx.reply.integer(0);
  std::vector<StreamId> ids;
  for (std::string_view text : args.subspan(2)) {
    const auto id = stream_id_argument(ctx.reply, text);
    if (!id) return;
    ids.push_back(*id);
  }
  const uint64_t removed = stream->remove(ids);
  ctx.changes = removed;
  if (removed != 0) ctx.keys.notify(notify::kStream, "xdel", ctx.db, args[1]);
  stream->finish(types::Touch::kModified);
  ctx.reply.integer(static_cast<int64_t>(removed));
}

void xlen(ReadContext& ctx, Args args) {
  const auto stream = read_stream(ctx, args[1]);
  if (!stream) return;
  ctx.reply.integer(static_cast<int64_t>(stream->length()));
}

void range(ReadContext& ctx, Args args, bool reverse) {
  const auto first = range_start_argument(ctx.reply, args[reverse ? 3 : 2]);
  if (!first) return;
  const auto last = range_end_argument(ctx.reply, args[reverse ? 2 : 3]);
  if (!last) return;
  ArgReader reader(args, 4);
  std::optional<int64_t> count;
  while (reader.more()) {
    if (!reader.word("count", 1)) {
      reader.fail(contract::error::kSyntax);
      break;
    }
    count = std::max<int64_t>(0, reader.integer());
  }
  if (reader.failed()) return ctx.reply.error(reader.error());
  const auto stream = read_stream(ctx, args[1]);
  if (!stream) return;
  if (!stream.exists()) return ctx.reply.array(0);
  if (count == 0) return ctx.reply.null_array();
  reply_entries(ctx, *stream, {*first, *last}, static_cast<uint64_t>(count.value_or(0)), reverse);
}

void xrange(ReadContext& ctx, Args args) {
  range(ctx, args, /*reverse=*/false);
}
void xrevrange(ReadContext& ctx, Args args) {
  range(ctx, args, /*reverse=*/true);
}

void xsetid(WriteContext& ctx, Args args) {
  const auto last = stream_id_argument(ctx.reply, args[2]);
  if (!last) return;
  ArgReader reader(args, 3);
  std::optional<uint64_t> added;
  std::optional<StreamId> max_deleted;
  while (reader.more()) {
    if (reader.word("entriesadded", 1)) {
      const int64_t number = reader.integer();
      if (!reader.failed() && number < 0) reader.fail("ERR entries_added must be positive");
      added = static_cast<uint64_t>(number);
    } else if (reader.word("maxdeletedid", 1)) {
      max_deleted = stream_id_argument(ctx.reply, reader.text());
      if (!max_deleted) return;
      if (*last < *max_deleted) {
        reader.fail(
            "ERR The ID specified in XSETID is smaller than the provided "
            "max_deleted_entry_id");
      }
    } else {
      reader.fail(contract::error::kSyntax);
    }
  }
  if (reader.failed()) return ctx.reply.error(reader.error());
  auto stream = open_stream(ctx, args[1]);
  if (!stream) return;
  if (!stream.exists()) return ctx.reply.error(contract::error::kNoSuchKey);
  if (stream->length() != 0 && *last < stream->last_entry()) {
    return ctx.reply.error(
        "ERR The ID specified in XSETID is smaller than the target stream top item");
  }
  if (added && *added < stream->length()) {
    return ctx.reply.error(
        "ERR The entries_added specified in XSETID is smaller than the target stream length");
  }
  const bool sets_deleted = max_deleted && *max_deleted != types::kStreamIdMin;
  stream->set_notes(*last, added.value_or(stream->notes().added),
                    sets_deleted ? *max_deleted : stream->notes().max_deleted);
  stream->finish();
  ctx.keys.notify(notify::kStream, "xsetid", ctx.db, args[1]);
  ctx.reply.ok();
}

constexpr CommandRow kTable[] = {
    {.name = "xadd",
     .arity = -5,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {{.flags = key::kRw | key::kUpdate,
               .begin = 1,
               .last = 0,
               .step = 1,
               .limit = 0,
               .notes = "The entries that are trimmed make it an update"}},
     .since = "5.0.0",
     .complexity = "O(1), and O(N) with N entries that are trimmed",
     .summary = "Add an entry to a stream",
     .history =
         "6.2.0: `NOMKSTREAM`, `MINID` and `LIMIT`.; 7.0.0: An ID of a time alone, `<ms>-*`.",
     .tips = "nondeterministic_output",
     .arguments =
         "key:key#0 nomkstream:pure-token=NOMKSTREAM@6.2.0? "
         "trim:block?(strategy:oneof(maxlen:pure-token=MAXLEN minid:pure-token=MINID@6.2.0) "
         "operator:oneof?(equal:pure-token== approximately:pure-token=~) threshold:string "
         "count:integer=LIMIT@6.2.0?) id_or_auto:oneof(auto_id:pure-token=* id:string) "
         "field_value:block*(field:string value:string)",
     .handler = xadd},
    {.name = "xdel",
     .arity = -3,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "5.0.0",
     .complexity = "O(N log(M)) with N IDs and M entries",
     .summary = "Remove entries from a stream",
     .arguments = "key:key#0 id:string*",
     .handler = xdel},
    {.name = "xlen",
     .arity = 2,
     .flags = flag::kReadonly | flag::kFast,
     .keys = {key_at(1, key::kRo)},
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "Number of entries of a stream",
     .arguments = "key:key#0",
     .handler = xlen},
    {.name = "xrange",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "5.0.0",
     .complexity = "O(log(M)+N) with N entries answered, of M",
     .summary = "Answer the entries between two IDs",
     .history = "6.2.0: Bounds may be exclusive.",
     .arguments = "key:key#0 start:string end:string count:integer=COUNT?",
     .handler = xrange},
    {.name = "xrevrange",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "5.0.0",
     .complexity = "O(log(M)+N) with N entries answered, of M",
     .summary = "Answer the entries between two IDs, the last one first",
     .history = "6.2.0: Bounds may be exclusive.",
     .arguments = "key:key#0 end:string start:string count:integer=COUNT?",
     .handler = xrevrange},
    {.name = "xsetid",
     .arity = -3,
     .flags = flag::kWrite | flag::kDenyOom | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "5.0.0",
     .complexity = "O(1)",
     .summary = "Set the last ID of a stream and what it counts",
     .history = "7.0.0: `ENTRIESADDED` and `MAXDELETEDID`.",
     .arguments = "key:key#0 last-id:string entries_added:integer=ENTRIESADDED@7.0.0? "
                  "max_deleted_entry_id:string=MAXDELETEDID@7.0.0?",
     .handler = xsetid},
    {.name = "xtrim",
     .arity = -4,
     .flags = flag::kWrite,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "5.0.0",
     .complexity = "O(N) with N entries removed",
     .summary = "Remove the first entries of a stream",
     .history = "6.2.0: `MINID` and `LIMIT`.",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 trim:block(strategy:oneof(maxlen:pure-token=MAXLEN "
                  "minid:pure-token=MINID@6.2.0) operator:oneof?(equal:pure-token== "
                  "approximately:pure-token=~) threshold:string count:integer=LIMIT@6.2.0?)",
     .handler = xtrim},
};
constexpr auto kRows = contract::family(kStreamFamily, kTable);

}  // namespace

std::span<const CommandRow> stream_rows() {
  return kRows;
}

}  // namespace ingot::commands

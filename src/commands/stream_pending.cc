// Entries that were delivered and not acknowledged: XPENDING, XCLAIM, XAUTOCLAIM.
#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/pending_reply.h"
#include "src/commands/stream_key.h"
#include "src/contract/thresholds.h"

namespace ingot::commands {
namespace {

using types::StreamConsumer;
using types::StreamFields;
using types::StreamGroup;
using types::StreamId;
using types::StreamPending;
using types::StreamReader;
using types::StreamWriter;

// --- XPENDING

struct PendingQuery {
  StreamRange range;
  int64_t min_idle_ms = 0;
  uint64_t count = 0;
  std::optional<std::string_view> consumer;
};

// Nothing when the error has been answered. Requires the arguments of the long form.
std::optional<PendingQuery> parse_pending(ReplySink& reply, Args args) {
  PendingQuery query;
  ArgReader reader(args, 3);
  if (reader.word("idle")) {
    query.min_idle_ms = reader.integer();
    if (reader.left() < 3) reader.fail(contract::error::kSyntax);
  }
  const std::string_view first = reader.text();
  const std::string_view last = reader.text();
  query.count = static_cast<uint64_t>(std::max<int64_t>(0, reader.integer()));
  if (reader.failed()) {
    reply.error(reader.error());
    return std::nullopt;
  }
  if (reader.more()) query.consumer = reader.text();
  const auto start = range_start_argument(reply, first);
  if (!start) return std::nullopt;
  const auto end = range_end_argument(reply, last);
  if (!end) return std::nullopt;
  query.range = {*start, *end};
  return query;
}

int64_t idle_ms(int64_t since_ms, int64_t now_ms) {
  return std::max<int64_t>(0, now_ms - since_ms);
}

void reply_summary(ReplySink& reply, const StreamReader& stream, const StreamGroup& group) {
  reply.array(4);
  reply.integer(static_cast<int64_t>(group.pending));
  if (group.pending == 0) {
    reply.null();
    reply.null();
    return reply.null_array();
  }
  stream.walk_pending(group, types::kStreamIdMin, [&](const StreamPending& pending) {
    reply_id(reply, pending.id);
    return false;
  });
  reply_id(reply, stream.last_pending(group).value_or(StreamId{}));
  std::vector<StreamConsumer> busy;
  stream.walk_consumers(group, [&](const StreamConsumer& consumer) {
    if (consumer.pending != 0) busy.push_back(consumer);
    return true;
  });
  reply.array(busy.size());
  for (const StreamConsumer& consumer : busy) {
    reply.array(2);
    reply.bulk(consumer.name);
    reply.bulk(std::to_string(consumer.pending));
  }
}

// With 0 also what was delivered in a time to come, by a host whose clock is ahead.
bool idle_enough(int64_t now_ms, const StreamPending& pending, int64_t min_idle_ms) {
  return min_idle_ms == 0 || now_ms - pending.delivered_ms >= min_idle_ms;
}

void reply_pending(ReadContext& ctx, const StreamReader& stream, const types::Record& record,
                   const StreamGroup& group, const PendingQuery& query) {
  PendingList list{.range = query.range, .count = query.count};
  // With 0 also what was delivered in a time to come, by a host whose clock is ahead.
  if (query.min_idle_ms != 0) list.delivered_until_ms = ctx.now_ms() - query.min_idle_ms;
  if (query.consumer) {
    list.consumer = stream.consumer(group, *query.consumer);
    if (!list.consumer) list.count = 0;
  }
  reply_pending_list(ctx, stream, record, group, std::move(list),
                     [now_ms = ctx.now_ms()](const StreamPending& pending, ReplySink& reply) {
                       reply.array(4);
                       reply_id(reply, pending.id);
                       reply.bulk(pending.consumer);
                       reply.integer(idle_ms(pending.delivered_ms, now_ms));
                       reply.integer(static_cast<int64_t>(pending.deliveries));
                     });
}

void xpending(ReadContext& ctx, Args args) {
  const bool summary = args.size() == 3;
  if (!summary && (args.size() < 6 || args.size() > 9)) {
    return ctx.reply.error(contract::error::kSyntax);
  }
  std::optional<PendingQuery> query;
  if (!summary) {
    query = parse_pending(ctx.reply, args);
    if (!query) return;
  }
  const auto stream = read_stream(ctx, args[1]);
  if (!stream) return;
  const auto group = stream->group(args[2]);
  if (!group) return ctx.reply.error(no_group_error(args[1], args[2]));
  summary ? reply_summary(ctx.reply, *stream, *group)
          : reply_pending(ctx, *stream, stream.record(), *group, *query);
}

// --- claiming

// How an entry changes its owner.
struct Claim {
  int64_t min_idle_ms = 0;
  int64_t delivered_ms = 0;            // from now on
  std::optional<uint64_t> deliveries;  // set to that; else one more, unless:
  bool only_ids = false;
};

bool exists(const StreamReader& stream, StreamId id) {
  return stream.entry(id, [](StreamId, const StreamFields&) { return true; });
}

// Gives entries of a group to one of its consumers, which comes into being with the first.
class Claiming {
 public:
  Claiming(WriteContext& ctx, Args args, StreamWriter& stream)
      : ctx_(ctx), key_(args[1]), name_(args[3]), stream_(stream), group_(stream_.group(args[2])) {}

  bool has_group() const { return group_.has_value(); }
  StreamGroup& group() { return *group_; }
  const StreamReader& stream() const { return stream_; }

  // `before` null: the entry was pending for nobody.
  void take_over(StreamId id, const StreamPending* before, const Claim& claim) {
    if (!consumer_) consumer_ = find_consumer();
    ++changes_;
    StreamPending pending{.id = id,
                          .consumer = consumer_->name,
                          .delivered_ms = claim.delivered_ms,
                          .deliveries = before != nullptr ? before->deliveries : 1};
    if (claim.deliveries) {
      pending.deliveries = *claim.deliveries;
    } else if (!claim.only_ids) {
      ++pending.deliveries;
    }
    stream_.give(&*group_, &*consumer_, pending, before);
    tell_claim(ctx_, key_, *group_, consumer_->name, pending);
  }
  // The entry is not in the stream any more.
  void forget(const StreamPending& pending) {
    ++changes_;
    tell_claim(ctx_, key_, *group_, pending.consumer, pending);
    stream_.release(&*group_, pending, consumer_ ? &*consumer_ : nullptr);
  }
  // The group has read up to here, if it has not read further.
  void read_until(StreamId last) {
    if (last <= group_->last) return;
    group_->last = last;
    has_read_on_ = true;
  }
  void finish() {
    // In Redis that counts where no entry tells of it.
    ctx_.changes = changes_ == 0 && has_read_on_ ? 1 : changes_;
    if (consumer_) stream_.store(*group_, *consumer_);
    stream_.store(*group_);
    stream_.finish();
  }

 private:
  StreamConsumer find_consumer() {
    auto consumer = stream_.consumer(*group_, name_);
    if (!consumer) {
      consumer = stream_.create_consumer(&*group_, name_, ctx_.now_ms());
      ++changes_;
      ctx_.keys.notify(notify::kStream, "xgroup-createconsumer", ctx_.db, key_);
    }
    consumer->seen_ms = ctx_.now_ms();
    return *consumer;
  }

  WriteContext& ctx_;
  const std::string_view key_;
  const std::string_view name_;  // of the consumer
  StreamWriter& stream_;
  std::optional<StreamGroup> group_;
  std::optional<StreamConsumer> consumer_;
  uint64_t changes_ = 0;
  bool has_read_on_ = false;
};

void reply_claimed(ReplySink& reply, const StreamReader& stream,
                   const std::vector<StreamId>& claimed, bool only_ids) {
  reply.array(claimed.size());
  for (const StreamId id : claimed) {
    if (only_ids) {
      reply_id(reply, id);
    } else {
      stream.entry(id, [&](StreamId at, const StreamFields& fields) {
        reply_entry(reply, at, fields);
        return true;
      });
    }
  }
}

struct ClaimRequest {
  Claim claim;
  std::vector<StreamId> ids;
  StreamId last;
  bool force = false;
};

std::optional<ClaimRequest> parse_claim(WriteContext& ctx, Args args) {
  ClaimRequest request;
  ArgReader reader(args, 4);
  request.claim.min_idle_ms =
      std::max<int64_t>(0, reader.integer("ERR Invalid min-idle-time argument for XCLAIM"));
  size_t next = 5;
  for (; next < args.size(); ++next) {
    const auto id = types::parse_stream_id(args[next], 0);
    if (!id) break;
    request.ids.push_back(*id);
  }
  std::optional<int64_t> delivered_ms;
  ArgReader options(args, next);
  while (!reader.failed() && options.more()) {
    if (options.word("force")) {
      request.force = true;
    } else if (options.word("justid")) {
      request.claim.only_ids = true;
    } else if (options.word("idle", 1)) {
      const int64_t idle = options.integer("ERR Invalid IDLE option argument for XCLAIM");
      delivered_ms = ctx.now_ms() - idle;
    } else if (options.word("time", 1)) {
      delivered_ms = options.integer("ERR Invalid TIME option argument for XCLAIM");
    } else if (options.word("retrycount", 1)) {
      const int64_t count = options.integer("ERR Invalid RETRYCOUNT option argument for XCLAIM");
      request.claim.deliveries.reset();
      if (count >= 0) request.claim.deliveries = static_cast<uint64_t>(count);
    } else if (options.word("lastid", 1)) {
      const auto id = stream_id_argument(ctx.reply, options.text());
      if (!id) return std::nullopt;
      request.last = *id;
    } else {
      options.fail("ERR Unrecognized XCLAIM option '" + std::string(options.text()) + "'");
    }
  }
  if (reader.failed() || options.failed()) {
    ctx.reply.error(reader.failed() ? reader.error() : options.error());
    return std::nullopt;
  }
  // A client's clock may be wrong: no error, but no time to come either.
  const int64_t now_ms = ctx.now_ms();
  const int64_t wanted = delivered_ms.value_or(now_ms);
  request.claim.delivered_ms = wanted < 0 || wanted > now_ms ? now_ms : wanted;
  return request;
}

void xclaim(WriteContext& ctx, Args args) {
  auto stream = open_stream(ctx, args[1]);
  if (!stream) return;
  Claiming claiming(ctx, args, *stream);
  if (!claiming.has_group()) return ctx.reply.error(no_group_error(args[1], args[2]));
  const auto request = parse_claim(ctx, args);
  if (!request) return;
  ctx.tell_nothing();  // but what follows
  bool any_told = false;
  const bool moves = request->last > claiming.group().last;
  claiming.read_until(request->last);
  std::vector<StreamId> claimed;
  each_ahead(*stream, request->ids, &claiming.group(), [&](StreamId id) {
    const auto pending = claiming.stream().pending(claiming.group(), id);
    if (!exists(claiming.stream(), id)) {
      if (pending) claiming.forget(*pending);
      any_told = any_told || pending;
      return;
    }
    if (!pending && !request->force) return;
    if (pending && !idle_enough(ctx.now_ms(), *pending, request->claim.min_idle_ms)) return;
    claiming.take_over(id, pending ? &*pending : nullptr, request->claim);
    claimed.push_back(id);
  });
  if (moves && !any_told && claimed.empty()) tell_group_position(ctx, args[1], claiming.group());
  reply_claimed(ctx.reply, claiming.stream(), claimed, request->claim.only_ids);
  claiming.finish();
}

struct AutoclaimRequest {
  Claim claim;
  StreamId start;
  uint64_t count = 100;
};

std::optional<AutoclaimRequest> parse_autoclaim(WriteContext& ctx, Args args) {
  constexpr int64_t kCountMax = std::numeric_limits<int64_t>::max() / 16;
  AutoclaimRequest request;
  request.claim.delivered_ms = ctx.now_ms();
  ArgReader reader(args, 4);
  request.claim.min_idle_ms =
      std::max<int64_t>(0, reader.integer("ERR Invalid min-idle-time argument for XAUTOCLAIM"));
  if (reader.failed()) {
    ctx.reply.error(reader.error());
    return std::nullopt;
  }
  const auto start = range_start_argument(ctx.reply, reader.text());
  if (!start) return std::nullopt;
  request.start = *start;
  while (reader.more()) {
    if (reader.word("count", 1)) {
      request.count =
          static_cast<uint64_t>(reader.integer_between(1, kCountMax, "ERR COUNT must be > 0"));
    } else if (reader.word("justid")) {
      request.claim.only_ids = true;
    } else {
      reader.fail(contract::error::kSyntax);
    }
  }
  if (!reader.failed()) return request;
  ctx.reply.error(reader.error());
  return std::nullopt;
}

void xautoclaim(WriteContext& ctx, Args args) {
  constexpr uint64_t kTriesEach = 10;
  const auto request = parse_autoclaim(ctx, args);
  if (!request) return;
  auto stream = open_stream(ctx, args[1]);
  if (!stream) return;
  Claiming claiming(ctx, args, *stream);
  if (!claiming.has_group()) return ctx.reply.error(no_group_error(args[1], args[2]));

  ctx.tell_nothing();  // but what follows
  // Looked at first and changed then, because the walk is over what changes.
  std::vector<StreamPending> candidates;
  std::vector<StreamId> claimed, gone;
  uint64_t tries = std::min(request->count, contract::kDeliveredByWriter) * kTriesEach;
  tries = std::min(tries, contract::kDeliveredByWriter);
  StreamId next;  // 0-0: the end was reached
  uint64_t left = request->count;
  uint64_t bytes = contract::kDeliveredBytesByWriter;
  claiming.stream().walk_pending(
      claiming.group(), request->start, [&](const StreamPending& pending) {
        if (tries == 0 || left == 0 || bytes == 0) {
          next = pending.id;
          return false;
        }
        --tries;
        bool there = false;
        uint64_t entry_bytes = 0;
        claiming.stream().entry(pending.id, [&](StreamId, const StreamFields& fields) {
          there = true;
          entry_bytes = fields.packed().size();
          return true;
        });
        if (there && !idle_enough(ctx.now_ms(), pending, request->claim.min_idle_ms)) return true;
        candidates.push_back(pending);
        (there ? claimed : gone).push_back(pending.id);
        if (!request->claim.only_ids) bytes -= std::min(bytes, entry_bytes);
        --left;
        return true;
      });
  for (const StreamPending& pending : candidates) {
    if (std::ranges::binary_search(gone, pending.id)) {
      claiming.forget(pending);
    } else {
      claiming.take_over(pending.id, &pending, request->claim);
    }
  }
  ctx.reply.array(3);
  reply_id(ctx.reply, next);
  reply_claimed(ctx.reply, claiming.stream(), claimed, request->claim.only_ids);
  ctx.reply.array(gone.size());
  for (const StreamId id : gone) reply_id(ctx.reply, id);
  claiming.finish();
}

constexpr CommandRow kTable[] = {
    {.name = "xautoclaim",
     .arity = -6,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kDelete)},
     .since = "6.2.0",
     .complexity = "O(1) when COUNT is small",
     .summary = "Give a consumer entries that have been pending for long",
     .history = "7.0.0: Entries that are not in the stream any more are told, and forgotten.",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 group:string consumer:string min-idle-time:string start:string "
                  "count:integer=COUNT? justid:pure-token=JUSTID?",
     .handler = xautoclaim,
     .counts_lookups = true},
    {.name = "xclaim",
     .arity = -6,
     .flags = flag::kWrite | flag::kFast,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "5.0.0",
     .complexity = "O(log(N)) for each ID with N entries pending in the group",
     .summary = "Give pending entries to a consumer",
     .tips = "nondeterministic_output",
     .arguments =
         "key:key#0 group:string consumer:string min-idle-time:string id:string* ms:integer=IDLE? "
         "unix-time-milliseconds:unix-time=TIME? count:integer=RETRYCOUNT? force:pure-token=FORCE? "
         "justid:pure-token=JUSTID? id:string=LASTID?",
     .handler = xclaim,
     .counts_lookups = true},
    {.name = "xpending",
     .arity = -3,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "5.0.0",
     .complexity = "O(N) with N entries answered",
     .summary = "What is pending in a consumer group",
     .history = "6.2.0: `IDLE`, and bounds may be exclusive.",
     .tips = "nondeterministic_output",
     .arguments = "key:key#0 group:string filters:block?(min-idle-time:integer=IDLE@6.2.0? "
                  "start:string end:string count:integer consumer:string?)",
     .handler = xpending},
};
constexpr auto kRows = contract::family(kStreamFamily, kTable);

}  // namespace

std::span<const CommandRow> stream_pending_rows() {
  return kRows;
}

}  // namespace ingot::commands

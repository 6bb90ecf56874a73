// Streamed replies, and arguments that are in the engine already.
#include "src/commands/long_string.h"

#include <memory>
#include <string>

#include "src/contract/errors.h"
#include "src/contract/thresholds.h"
#include "src/data/built_argument.h"
#include "src/data/built_value.h"
#include "src/data/string_source.h"
#include "src/settings/config.h"
#include "src/types/string_splice.h"
#include "src/types/string_value.h"

namespace ingot::commands {

using contract::ReadContext;
using contract::ReplySink;
using contract::WriteContext;
using storage::Metadata;
using types::Record;

namespace {

using ViewPtr = std::shared_ptr<const data::View>;

// The least value of proto-max-bulk-len.
constexpr uint64_t kAlwaysAllowedBytes = 1 << 20;

struct Span {
  uint64_t offset;
  uint64_t bytes;
};

// Context: a ReadContext with its view, or a WriteContext without one.
template <typename Context>
void reply_span(Context& ctx, const ViewPtr& view, const Record& record, Span span,
                uint64_t held_max) {
  if (!record.collection()) return ctx.reply.bulk(record.payload().substr(span.offset, span.bytes));
  const uint64_t keeps_max = ctx.reply.keeps_bytes_max();
  if (keeps_max != 0 && span.bytes > keeps_max) return ctx.reply.error(contract::kOutOfMemory);
  if (keeps_max == 0 && span.bytes > held_max) {
    auto source = data::stream_string(
        ctx.data, ctx.keys, view,
        {.chunks = types::chunks_of(record), .offset = span.offset, .bytes = span.bytes});
    if (source) ctx.reply.stream({.bytes = span.bytes, .source = std::move(source)});
    return;
  }
  std::string value;
  types::read_string(ctx.keys.data(), record, span.offset, span.bytes, &value);
  ctx.reply.bulk(value);
}

// False when the argument did not arrive: that is latched as a failure of storage.
bool argument_is_complete(WriteContext& ctx) {
  const storage::Status status = ctx.argument->status();
  if (!status.ok()) ctx.keys.data().latch_error(status);
  return status.ok();
}

// The argument becomes the whole string.
void link_argument(WriteContext& ctx, std::string_view key, const Record* before,
                   int64_t expire_ms) {
  if (!ctx.argument->link(ctx.keys)) return;  // only when reading failed, which is latched
  ctx.keys.store(ctx.db, key, before,
                 {.type = storage::ValueType::kString,
                  .expire_ms = expire_ms,
                  .collection = Metadata::Collection{.id = ctx.argument->id(),
                                                     .count = ctx.argument->length()}});
}

}  // namespace

void reply_string(ReadContext& ctx, const Record& record, uint64_t offset, uint64_t bytes,
                  uint64_t held_max) {
  reply_span(ctx, ctx.view, record, {.offset = offset, .bytes = bytes}, held_max);
}

void reply_string(ReadContext& ctx, const Record& record) {
  reply_string(ctx, record, 0, types::string_length(record));
}

void reply_string(WriteContext& ctx, const Record& record) {
  reply_span(ctx, nullptr, record, {.offset = 0, .bytes = types::string_length(record)},
             contract::kHeldStringsBytes);
}

uint64_t value_length(const WriteContext& ctx, std::string_view text) {
  return ctx.argument != nullptr ? ctx.argument->length() : text.size();
}

bool length_allowed(WriteContext& ctx, uint64_t length, uint64_t added) {
  const uint64_t total = length + added;
  if (total >= length && total <= kAlwaysAllowedBytes) return true;
  const auto max = static_cast<uint64_t>(ctx.config.settings()->proto_max_bulk_len);
  if (total >= length && total <= max) return true;
  ctx.reply.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  return false;
}

void store_value(WriteContext& ctx, std::string_view key, const Record* before,
                 std::string_view text, int64_t expire_ms) {
  if (ctx.argument == nullptr) {
    types::store_string(ctx.keys, ctx.db, key, before, text, expire_ms);
  } else if (argument_is_complete(ctx)) {
    link_argument(ctx, key, before, expire_ms);
  }
}

bool splice_value(WriteContext& ctx, std::string_view key, const Record* before, uint64_t offset,
                  std::string_view text) {
  if (ctx.argument == nullptr) {
    types::write_string(ctx.keys, ctx.db, key, before, offset, text);
    return true;
  }
  if (!argument_is_complete(ctx)) return true;
  const int64_t expire_ms = before != nullptr ? before->expire_ms() : 0;
  const uint64_t length = before != nullptr ? types::string_length(*before) : 0;
  if (offset == 0 && ctx.argument->length() >= length) {
    link_argument(ctx, key, before, expire_ms);
    return true;
  }
  // Rewriting the string that it goes into would cost more whenever that is large.
  if (ctx.argument->length() <= contract::kSplicedByWriterBytes) {
    std::string bytes;
    types::read_string(ctx.keys.data(), {ctx.argument->id()}, 0, ctx.argument->length(), &bytes);
    types::write_string(ctx.keys, ctx.db, key, before, offset, bytes);
    return true;
  }
  const auto built = data::build_value(
      ctx, {.sources = {&key, 1}, .is_large = true, .is_as_seen = true},  // `offset` may be its end
      [argument = ctx.argument->shared_from_this(), db = ctx.db, name = std::string(key), offset](
          types::KeyReader& keys, const types::PutElement& put) {
        Record base;
        const bool found = keys.peek(db, name, &base) && types::is_string(base);
        return types::splice_string(
            keys.data(), found ? &base : nullptr,
            {.id = argument->id(), .length = argument->length(), .offset = offset}, put);
      });
  if (!built) return false;
  ctx.keys.store(ctx.db, key, before, built->record());
  return true;
}

}  // namespace ingot::commands

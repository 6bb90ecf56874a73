// Streams, staged values and rewriting in the pool; see long_string.h.
#include "src/commands/long_string.h"

#include <map>
#include <memory>
#include <string>

#include "src/exec/services.h"
#include "src/exec/store.h"
#include "src/server/config.h"
#include "src/types/staged_string.h"
#include "src/types/string_build.h"
#include "src/types/string_source.h"
#include "src/types/string_value.h"

namespace ingot::commands {

using command::ReadContext;
using command::ReplySink;
using command::Services;
using command::WriteContext;
using storage::Metadata;
using types::kLongStringBytes;
using types::Record;

namespace {

using ViewPtr = std::shared_ptr<const exec::View>;

// A staged value up to this size is copied by the writer itself: rewriting the string that it goes
// into would cost more whenever that is large.
constexpr uint64_t kStagedInPlaceBytes = 4 << 20;
// The least value of proto-max-bulk-len.
constexpr uint64_t kAlwaysAllowedBytes = 1 << 20;

std::map<uint32_t, std::string> uncommitted_chunks(storage::Reader& data,
                                                   storage::CollectionId id) {
  std::map<uint32_t, std::string> chunks;
  data.uncommitted(storage::Space::kData, storage::collection_begin(id),
                   storage::collection_end(id), [&](std::string_view key, std::string_view value) {
                     std::string_view bytes;
                     if (!types::decode_chunk(value, &bytes)) return;
                     chunks.emplace(storage::read_be32(key.substr(sizeof(id))), bytes);
                   });
  return chunks;
}

void stream(Services& services, types::KeyReader& keys, ReplySink& reply, ViewPtr view,
            types::StringSpan span) {
  if (view == nullptr) {
    // Of what a view taken now does not have, the writer's group knows. A probe knows no state to
    // take a view of; a second look-up makes it give up.
    std::string chunk;
    keys.data().get(storage::Space::kData, storage::chunk_key(span.id, 0), &chunk);
    if (keys.data().failed()) return;
    view = services.store.view();
    span.patches = uncommitted_chunks(keys.data(), span.id);
  }
  reply.stream({.bytes = span.bytes,
                .source = std::make_unique<types::PieceSource>(services, std::move(view),
                                                               types::read_span(std::move(span)))});
}

void reply_range(Services& services, types::KeyReader& keys, ReplySink& reply, const ViewPtr& view,
                 const Record& record, uint64_t offset, uint64_t bytes, uint64_t held_max) {
  if (!record.collection()) return reply.bulk(record.payload().substr(offset, bytes));
  if (bytes > held_max) {
    return stream(services, keys, reply, view,
                  {.id = record.collection()->id, .offset = offset, .bytes = bytes});
  }
  std::string value;
  types::read_string(keys.data(), record, offset, bytes, &value);
  reply.bulk(value);
}

// Null when nothing fitting is there and needs() was called, or the disk failed.
std::shared_ptr<types::StringBuild> obtain_build(WriteContext& ctx, std::string_view key,
                                                 const Record* base, types::Splice splice) {
  auto build = std::dynamic_pointer_cast<types::StringBuild>(ctx.prepared);
  if (build && build->built_from(base, splice) && build->link(ctx.keys)) return build;
  if (!ctx.in_place) {
    ctx.needs(types::prepare_string(ctx.services, ctx.db, std::string(key), std::move(splice)));
    return nullptr;
  }
  build = std::make_shared<types::StringBuild>(
      ctx.services, base, splice, [&](std::string_view lower, std::string_view upper) {
        return ctx.keys.data().cursor(storage::Space::kData, lower, upper);
      });
  if (!build->status().ok()) {
    ctx.keys.data().latch_error(build->status());
  } else if (build->link(ctx.keys)) {
    ctx.keys.effects().kept.push_back(build);
    return build;
  }
  return nullptr;
}

// False when the staged value did not arrive: that is latched as a failure of storage.
bool staged_is_complete(WriteContext& ctx) {
  const storage::Status status = ctx.staged->status();
  if (!status.ok()) ctx.keys.data().latch_error(status);
  return status.ok();
}

// The staged value becomes the whole string.
void link_staged(WriteContext& ctx, std::string_view key, const Record* before, int64_t expire_ms) {
  if (!ctx.staged->link(ctx.keys)) return;  // only when reading failed, which is latched
  ctx.keys.store(
      ctx.db, key, before,
      {.type = storage::ValueType::kString,
       .expire_ms = expire_ms,
       .collection = Metadata::Collection{.id = ctx.staged->id(), .count = ctx.staged->length()}});
}

}  // namespace

void reply_string(ReadContext& ctx, const Record& record, uint64_t offset, uint64_t bytes,
                  uint64_t held_max) {
  reply_range(ctx.services, ctx.keys, ctx.reply, ctx.view, record, offset, bytes, held_max);
}

void reply_string(ReadContext& ctx, const Record& record) {
  reply_string(ctx, record, 0, types::string_length(record));
}

void reply_string(WriteContext& ctx, const Record& record) {
  reply_range(ctx.services, ctx.keys, ctx.reply, nullptr, record, 0, types::string_length(record),
              kHeldReplyBytes);
}

uint64_t value_length(const WriteContext& ctx, std::string_view text) {
  return ctx.staged != nullptr ? ctx.staged->length() : text.size();
}

bool length_allowed(WriteContext& ctx, uint64_t length, uint64_t added) {
  const uint64_t total = length + added;
  if (total >= length && total <= kAlwaysAllowedBytes) return true;
  const auto max = static_cast<uint64_t>(ctx.services.config.settings()->proto_max_bulk_len);
  if (total >= length && total <= max) return true;
  ctx.reply.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  return false;
}

void store_value(WriteContext& ctx, std::string_view key, const Record* before,
                 std::string_view text, int64_t expire_ms) {
  if (ctx.staged == nullptr) {
    types::store_string(ctx.keys, ctx.db, key, before, text, expire_ms);
  } else if (staged_is_complete(ctx)) {
    link_staged(ctx, key, before, expire_ms);
  }
}

bool splice_value(WriteContext& ctx, std::string_view key, const Record* before, uint64_t offset,
                  std::string_view text) {
  if (ctx.staged == nullptr) {
    types::write_string(ctx.keys, ctx.db, key, before, offset, text);
    return true;
  }
  if (!staged_is_complete(ctx)) return true;
  const int64_t expire_ms = before != nullptr ? before->expire_ms() : 0;
  const uint64_t length = before != nullptr ? types::string_length(*before) : 0;
  if (offset == 0 && ctx.staged->length() >= length) {
    link_staged(ctx, key, before, expire_ms);
    return true;
  }
  if (ctx.staged->length() <= kStagedInPlaceBytes) {
    std::string bytes;
    types::read_string(ctx.keys.data(), ctx.staged->id(), 0, ctx.staged->length(), &bytes);
    types::write_string(ctx.keys, ctx.db, key, before, offset, bytes);
    return true;
  }
  auto build =
      obtain_build(ctx, key, before, {.value = ctx.staged->shared_from_this(), .offset = offset});
  if (build == nullptr) return false;
  ctx.keys.store(ctx.db, key, before,
                 {.type = storage::ValueType::kString,
                  .limit_passed = true,
                  .expire_ms = expire_ms,
                  .collection = Metadata::Collection{.id = build->id(), .count = build->length()}});
  return true;
}

bool copy_string(WriteContext& ctx, std::string_view key, const Record& source, Metadata* copy) {
  *copy = source.metadata();
  if (!source.collection()) return true;
  if (types::string_length(source) <= kLongStringBytes) {
    std::string bytes;
    types::read_string(ctx.keys.data(), source, 0, types::string_length(source), &bytes);
    copy->collection = types::add_chunked_string(ctx.keys, bytes);
    return true;
  }
  auto build = obtain_build(ctx, key, &source, {});
  if (build == nullptr) return false;
  copy->collection = Metadata::Collection{.id = build->id(), .count = build->length()};
  return true;
}

}  // namespace ingot::commands

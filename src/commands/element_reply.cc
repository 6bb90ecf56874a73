// Writing few elements at once, and handing the rest of many to a piece source.
#include "src/commands/element_reply.h"
#include "src/contract/thresholds.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/data/piece_source.h"

namespace ingot::commands {
namespace {

// Elements that are announced and not written yet; less than none are there when it is damaged.
using Left = std::shared_ptr<int64_t>;

void check_end(storage::Reader& data, const Left& left) {
  if (*left == 0) return;
  data.latch_error({storage::Status::Code::kCorruption,
                    "a collection does not have as many elements as it counts"});
}

// Writes the records of the range one after another. True when they are all written; else the range
// begins (or ends) with the first that is not.
bool write_some(contract::ReadContext& ctx, data::RecordRange* range, const WriteElement& write,
                const Left& left) {
  const auto at = ctx.keys.data().cursor(range->space, range->lower, range->upper);
  size_t bytes = 0;
  range->reverse ? at->seek_for_prev(range->upper) : at->seek(range->lower);
  for (; at->valid(); range->reverse ? at->prev() : at->next()) {
    if (bytes > contract::kHeldElementsBytes && ctx.view) {
      (range->reverse ? range->upper : range->lower).assign(at->key());
      if (range->reverse) range->upper.push_back('\0');
      return false;
    }
    const std::string_view key = at->key();
    const std::string_view value = at->value();
    *left -= static_cast<int64_t>(write(key, value, ctx.reply));
    bytes += key.size() + value.size();
  }
  ctx.keys.data().check(*at);
  check_end(ctx.keys.data(), left);
  return true;
}

}  // namespace

void reply_elements(contract::ReadContext& ctx, data::RecordRange range, uint64_t count,
                    WriteElement write) {
  const Left left(new int64_t(static_cast<int64_t>(count)));
  if (count <= contract::kHeldInPool || !ctx.view) {
    if (count >= contract::kHeldElements && !ctx.keys.data().begin_walk(count)) return;
    if (write_some(ctx, &range, write, left)) return;
  }
  auto encode = [write = std::move(write), left, version = ctx.reply.version()](
                    std::string_view key, std::string_view value, std::string* out) {
    contract::EncodedReply piece;
    contract::RespSink sink(piece, version);
    *left -= static_cast<int64_t>(write(key, value, sink));
    out->append(piece.bytes);
  };
  auto read = [records = data::read_range(std::move(range), std::move(encode)), left](
                  storage::Reader& data, std::string* piece) mutable {
    const bool more = records(data, piece);
    if (!more || *left < 0) check_end(data, left);
    return more;
  };
  ctx.reply.elements(std::make_unique<data::PieceSource>(ctx.data, ctx.view, std::move(read)));
}

void stream_reply(data::Services& services, std::shared_ptr<const data::View> view,
                  contract::ReplySink& reply, WritePiece write, data::PieceSource::Use use) {
  auto read = [write = std::move(write), version = reply.version()](storage::Reader& data,
                                                                    std::string* piece) mutable {
    contract::EncodedReply encoded;
    contract::RespSink sink(encoded, version);
    const bool more = write(data, sink, [&] { return encoded.bytes.size() >= data::kPieceBytes; });
    *piece = std::move(encoded.bytes);
    return more && !data.failed();
  };
  reply.elements(
      std::make_unique<data::PieceSource>(services, std::move(view), std::move(read), use));
}

void stream_answers(contract::ReadContext& ctx, contract::Args names, AnswerName answer) {
  auto write = [names = std::vector<std::string>(names.begin(), names.end()), next = size_t{0},
                answer = std::move(answer)](storage::Reader& data, contract::ReplySink& reply,
                                            const Enough& enough) mutable {
    while (next < names.size() && !enough() && !data.failed()) answer(data, names[next++], reply);
    return next < names.size();
  };
  stream_reply(ctx.data, ctx.view, ctx.reply, std::move(write));
}

bool can_stream(contract::ReadContext& ctx) {
  if (ctx.reply.keeps_bytes_max() != 0) return false;
  if (!ctx.view) (void)ctx.keys.data().begin_walk(contract::kVisitedOnIoThread + 1);
  return ctx.view != nullptr;
}

}  // namespace ingot::commands

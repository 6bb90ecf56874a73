// The thread's random generator, and draws that are streamed when there are many.
#include "src/commands/chance.h"

#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "src/contract/args.h"
#include "src/types/member_table.h"

namespace ingot::commands {
namespace {

constexpr uint64_t kDrawnAtOnce = 32;

}  // namespace

std::optional<DrawRequest> read_draw_request(contract::ReplySink& reply, contract::Args args,
                                             std::string_view word) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  DrawRequest request;
  contract::ArgReader reader(args, 2);
  if (!reader.more()) return request;
  request.one = false;
  request.count = reader.integer();
  if (request.count < -kMax) {
    reader.fail(
        "ERR value is out of range, value must between -9223372036854775807 and "
        "9223372036854775807");
  }
  if (reader.more()) {
    request.with_values = reader.word(word);
    // Each element is two in the reply.
    const bool fits = request.count >= -kMax / 2 && request.count <= kMax / 2;
    if (reader.done() && !fits) reader.fail("ERR value is out of range");
  }
  if (!reader.failed()) return request;
  reply.error(reader.error());
  return std::nullopt;
}

Random& dice() {
  thread_local Random random{std::random_device{}()};
  return random;
}

bool DrawnOnce::is_new(storage::Reader& data, std::string_view name) {
  constexpr int kFruitlessMax = 1000;
  if (hashes_.insert(XXH3_64bits_withSeed(name.data(), name.size(), seed_)).second) {
    fruitless_ = 0;
    return true;
  }
  if (++fruitless_ == kFruitlessMax) {
    data.latch_error({storage::Status::Code::kCorruption, "a collection lacks members"});
  }
  return false;
}

Draw draw_from_table(storage::CollectionId id, uint64_t size, bool repeats, WriteDrawn write) {
  return [id, size, repeats, write = std::move(write), once = DrawnOnce()](
             storage::Reader& data, uint64_t count, contract::ReplySink& reply) mutable {
    types::MemberTable table(data, id);
    std::string member;
    std::string stored;
    uint64_t drawn = 0;
    size_t bytes = 0;
    while (drawn < count && bytes < contract::kHeldElementsBytes && !data.failed() &&
           table.random(dice(), size, &member, &stored)) {
      if (!repeats && !once.is_new(data, member)) continue;
      write(member, stored, reply);
      bytes += member.size() + stored.size();
      ++drawn;
    }
    return drawn;
  };
}

void reply_drawn(contract::ReadContext& ctx, uint64_t count, Draw draw) {
  storage::Reader& now = ctx.keys.data();
  uint64_t left = count;
  if (!ctx.view) {
    for (uint64_t drawn = 1; left > 0 && drawn > 0; left -= drawn) {
      drawn = draw(now, left, ctx.reply);
    }
    return;
  }
  if (count <= contract::kHeldElements) left -= draw(now, count, ctx.reply);
  if (left == 0 || now.failed()) return;
  // What is drawn again and again is worth caching.
  ctx.reply.elements(std::make_unique<data::PieceSource>(
      ctx.data, ctx.view,
      [left, draw = std::move(draw), version = ctx.reply.version()](storage::Reader& data,
                                                                    std::string* piece) mutable {
        contract::EncodedReply encoded;
        contract::RespSink sink(encoded, version);
        while (left > 0 && encoded.bytes.size() < data::kPieceBytes && !data.failed()) {
          left -= draw(data, std::min(left, kDrawnAtOnce), sink);
        }
        *piece = std::move(encoded.bytes);
        return left > 0;
      },
      data::PieceSource::Use{.cache = storage::CacheUse::kFill}));
}

}  // namespace ingot::commands

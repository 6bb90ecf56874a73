// The thread's random generator, and draws that are streamed when there are many.
#include "src/commands/chance.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "src/commands/sorted_reply.h"
#include "src/contract/args.h"
#include "src/data/spill_sort.h"
#include "src/types/member_table.h"

namespace ingot::commands {
namespace {

void lacks_members(storage::Reader& data) {
  data.latch_error({storage::Status::Code::kCorruption, "a collection lacks members"});
}

constexpr uint64_t kDrawnAtOnce = 32;
constexpr uint64_t kWalkedForADraw = 64;     // steps take as long
constexpr uint64_t kDrawsOfAWalk = 1 << 20;  // which the client waits for
// They are sorted in the engine, which shall not get large elements again and again.
constexpr size_t kBytesOfAWalk = 64 << 20;

// All that have been drawn, in the order of random keys. Nothing where they are too large.
std::shared_ptr<data::SpillSort> gather(contract::ReadContext& ctx, const WalkedDraws& draws) {
  storage::Reader& data = ctx.keys.data();
  auto gathered = std::make_shared<data::SpillSort>(ctx.data);
  FallenDraws fallen(draws.count, draws.of);
  size_t bytes = 0;
  std::string key;
  std::string element;
  types::MemberTable(data, draws.id).walk([&](std::string_view member, std::string_view stored) {
    if (draws.is_alive && !draws.is_alive(stored)) return true;
    const uint64_t times = fallen.on_next();
    if (times == 0) return true;
    element.clear();
    storage::append_be32(&element, static_cast<uint32_t>(member.size()));
    element.append(member).append(stored);
    for (uint64_t i = 0; i < times && bytes <= kBytesOfAWalk; ++i) {
      key.clear();
      storage::append_be64(&key, dice()());
      storage::append_be64(&key, gathered->size());
      gathered->add(key, element);
      bytes += key.size() + element.size();
    }
    return fallen.left() > 0 && bytes <= kBytesOfAWalk && !data.failed();
  });
  if (data.failed() || bytes > kBytesOfAWalk || !gathered->finish().ok()) return nullptr;
  if (fallen.left() > 0) lacks_members(data);
  return gathered;
}

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
  if (++fruitless_ == kFruitlessMax) lacks_members(data);
  return false;
}

FallenDraws::FallenDraws(uint64_t count, uint64_t of) : left_(count), of_(of), random_(dice()()) {
  find_next();
}

// The lowest of `left_` numbers drawn from what lies behind begin_.
void FallenDraws::find_next() {
  if (left_ == 0) return;
  const double drawn = 1 - std::uniform_real_distribution<double>()(random_);  // never 0
  begin_ += (1 - begin_) * -std::expm1(std::log(drawn) / static_cast<double>(left_));
  const auto place = static_cast<uint64_t>(begin_ * static_cast<double>(of_));
  next_ = std::min(std::max(place, at_), of_ - 1);
}

uint64_t FallenDraws::on_next() {
  uint64_t times = 0;
  for (; left_ > 0 && next_ == at_; ++times) {
    --left_;
    find_next();
  }
  ++at_;
  return times;
}

bool reply_walked(contract::ReadContext& ctx, const WalkedDraws& draws,
                  const std::function<void(uint64_t)>& announce, WriteDrawn write) {
  if (draws.count <= draws.of / kWalkedForADraw || draws.count > kDrawsOfAWalk) return false;
  storage::Reader& data = ctx.keys.data();
  if (draws.of > contract::kVisitedOnIoThread && !data.begin_walk(draws.of)) return true;
  auto gathered = gather(ctx, draws);
  if (data.failed()) return true;
  if (!gathered) return false;
  announce(draws.count);
  reply_sorted(ctx, std::move(gathered), {.count = draws.count},
               [write = std::move(write)](storage::Reader&, std::string_view,
                                          std::string_view element, contract::ReplySink& reply) {
                 const uint32_t length = storage::read_be32(element);
                 element.remove_prefix(sizeof(length));
                 write(element.substr(0, length), element.substr(length), reply);
               });
  return true;
}

Draw draw_from_table(storage::CollectionId id, uint64_t size, bool repeats, WriteDrawn write,
                     IsAlive is_alive) {
  return [id, size, repeats, write = std::move(write), is_alive = std::move(is_alive),
          once = DrawnOnce()](storage::Reader& data, uint64_t count,
                              contract::ReplySink& reply) mutable {
    types::MemberTable table(data, id);
    std::string member;
    std::string stored;
    uint64_t drawn = 0;
    size_t bytes = 0;
    while (drawn < count && bytes < contract::kHeldElementsBytes && !data.failed() &&
           table.random(dice(), size, &member, &stored)) {
      if (is_alive && !is_alive(stored)) continue;
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
  stream_reply(ctx.data, ctx.view, ctx.reply,
               [left, draw = std::move(draw)](storage::Reader& data, contract::ReplySink& reply,
                                              const Enough& enough) mutable {
                 while (left > 0 && !enough() && !data.failed()) {
                   left -= draw(data, std::min(left, kDrawnAtOnce), reply);
                 }
                 return left > 0;
               },
               {.cache = storage::CacheUse::kFill});
}

}  // namespace ingot::commands

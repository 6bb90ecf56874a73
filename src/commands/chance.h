// What the commands that pick elements at random share: the dice, and replies of many draws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "src/commands/element_reply.h"
#include "src/contract/context.h"
#include "src/contract/thresholds.h"
#include "src/data/piece_source.h"

namespace ingot::commands {

// What HRANDFIELD, SRANDMEMBER and ZRANDMEMBER are asked for.
struct DrawRequest {
  bool one = true;    // without a count: a single element, no array
  int64_t count = 1;  // negative: with repetitions
  bool with_values = false;

  bool repeats() const { return count < 0; }
  uint64_t size() const { return static_cast<uint64_t>(repeats() ? -count : count); }
};
// Reads [count [word]] behind the key. Nothing when the error has been answered.
std::optional<DrawRequest> read_draw_request(contract::ReplySink& reply, contract::Args args,
                                             std::string_view word);

using Random = std::mt19937_64;

// Each thread's own.
Random& dice();

// Takes `wanted` different elements, at most half of what there is: `draw(&name)` draws one, false
// after a failure, `take(name)` gets each that was not drawn before. Ends with an error where a
// damaged collection counts more elements than it has.
template <typename DrawOne, typename Take>
void draw_few(storage::Reader& data, uint64_t wanted, const DrawOne& draw, const Take& take) {
  constexpr int kFruitlessMax = 1000;
  std::unordered_set<std::string> drawn;
  std::string name;
  int fruitless = 0;
  while (drawn.size() < wanted && draw(&name)) {
    if (drawn.insert(name).second) {
      take(name);
      fruitless = 0;
    } else if (++fruitless == kFruitlessMax) {
      return data.latch_error({storage::Status::Code::kCorruption, "a collection lacks members"});
    }
  }
}

// Takes some of `of` elements that it is asked about one after another: exactly `wanted` at the
// end, each set of them with equal chance.
class Sample {
 public:
  Sample(uint64_t wanted, uint64_t of) : wanted_(wanted), left_(of), random_(dice()()) {}
  bool takes() {
    if (left_ == 0 || random_() % left_-- >= wanted_) return false;
    --wanted_;
    return true;
  }

 private:
  uint64_t wanted_;
  uint64_t left_;
  Random random_;  // not dice(): the thread may change meanwhile
};

// Whether so many of a large collection's elements are rather sampled than drawn one by one.
inline bool is_sampled(uint64_t wanted, uint64_t of) {
  constexpr uint64_t kStepsOfADraw = 64;
  return wanted > of / 3 || (wanted > contract::kHeldElements && wanted > of / kStepsOfADraw);
}

// Answers `wanted` of the `of` elements in a collection's table, behind the header, in the order in
// which they stand: `write(key, value, reply)` writes one. It may run later, as WriteElement.
template <typename Write>
void reply_sample(contract::ReadContext& ctx, storage::CollectionId id, uint64_t wanted,
                  uint64_t of, Write write) {
  reply_elements(
      ctx,
      {.space = storage::Space::kData,
       .lower = storage::collection_begin(id),
       .upper = storage::collection_end(id)},
      of,
      [sample = Sample(wanted, of), write = std::move(write)](
          std::string_view key, std::string_view value, contract::ReplySink& reply) mutable {
        if (sample.takes()) write(key, value, reply);
        return uint64_t{1};
      });
}

// Writes `count` elements. Not always on the same thread, one call at a time.
using Draw = std::function<void(storage::Reader& data, uint64_t count, contract::ReplySink& reply)>;

// `count` draws as a streamed reply, from the view.
std::unique_ptr<net::BodySource> stream_draws(contract::ReadContext& ctx, uint64_t count,
                                              Draw draw);

// Answers `count` draws, repetitions included. `walks`: even a few need the pool. `announce` writes
// the reply's header, `make_draw` gives what writes draws behind it.
template <typename MakeDraw, typename Announce>
void reply_draws(contract::ReadContext& ctx, uint64_t count, bool walks, const MakeDraw& make_draw,
                 const Announce& announce) {
  const bool holds_many = count > contract::kHeldElements && !ctx.view;
  if ((walks || holds_many) && !ctx.keys.data().begin_walk(count)) return;
  if (holds_many && count > contract::kDrawnInTransactionMax) {
    return ctx.reply.error("ERR value is out of range");
  }
  const Draw draw = make_draw();
  announce(count);
  if (count <= contract::kHeldElements || !ctx.view) return draw(ctx.keys.data(), count, ctx.reply);
  ctx.reply.elements(stream_draws(ctx, count, draw));
}

}  // namespace ingot::commands

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
#include <vector>

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

// What has been drawn, where nothing is to be drawn twice.
class DrawnOnce {
 public:
  // Whether the name comes for the first time. Fails where a damaged collection counts more
  // elements than it has, so that nothing new ever comes.
  bool is_new(storage::Reader& data, std::string_view name);

 private:
  const uint64_t seed_ = dice()();
  std::unordered_set<uint64_t> hashes_;  // the names may be large
  int fruitless_ = 0;
};

// Takes `wanted` different elements, at most half of what there is: `draw(&name)` draws one, false
// after a failure, `take(name)` gets each that was not drawn before.
template <typename DrawOne, typename Take>
void draw_few(storage::Reader& data, uint64_t wanted, const DrawOne& draw, const Take& take) {
  DrawnOnce drawn;
  std::string name;
  while (wanted > 0 && !data.failed() && draw(&name)) {
    if (!drawn.is_new(data, name)) continue;
    take(name);
    --wanted;
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

// Which of some elements that are walked over `count` draws fall on, repetitions included: each
// draw on any of them with equal chance.
class FallenDraws {
 public:
  FallenDraws(uint64_t count, uint64_t of);
  uint64_t on_next();  // how many on the next element
  uint64_t left() const { return left_; }

 private:
  void find_next();

  uint64_t left_;
  const uint64_t of_;
  uint64_t at_ = 0;
  double begin_ = 0;   // all that are left fall behind this part of the elements
  uint64_t next_ = 0;  // the element that the first of them falls on
  Random random_;
};

// Whether so many of a large collection's elements are rather sampled than drawn one by one.
inline bool is_sampled(uint64_t wanted, uint64_t of) {
  constexpr uint64_t kStepsOfADraw = 128;  // of a walk take as long
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

// Writes up to `count` elements, no more when they have some 64 KB, and answers how many. Not
// always on the same thread, one call at a time.
using Draw = std::move_only_function<uint64_t(storage::Reader& data, uint64_t count,
                                              contract::ReplySink& reply)>;

using WriteDrawn = std::function<void(std::string_view member, std::string_view stored,
                                      contract::ReplySink& reply)>;
// Draws from the table of a collection that counts so many elements, those alone that are alive
// (where nothing says which, all are).
using IsAlive = std::function<bool(std::string_view stored)>;
Draw draw_from_table(storage::CollectionId id, uint64_t size, bool repeats, WriteDrawn write,
                     IsAlive is_alive = nullptr);

// Answers with draws, repetitions included, that one walk over a large collection has found; false,
// and nothing is answered, where drawing them one by one is better. `of`: the elements that are
// alive; `announce(count)` writes the header.
struct WalkedDraws {
  storage::CollectionId id;
  uint64_t of;
  uint64_t count;
  IsAlive is_alive = nullptr;
};
bool reply_walked(contract::ReadContext& ctx, const WalkedDraws& draws,
                  const std::function<void(uint64_t)>& announce, WriteDrawn write);

// Draws with repetitions from elements that are held; `write` answers how many bytes one has.
template <typename Held, typename Write>
Draw draw_from_held(std::vector<Held> held, Write write) {
  return [held = std::move(held), write = std::move(write)](storage::Reader&, uint64_t count,
                                                            contract::ReplySink& reply) {
    uint64_t drawn = 0;
    size_t bytes = 0;
    for (; drawn < count && bytes < contract::kHeldElementsBytes && !held.empty(); ++drawn) {
      bytes += write(held[dice()() % held.size()], reply);
    }
    return drawn;
  };
}

// Writes `count` draws behind the header: few at once, of large elements or of many the rest is
// streamed from the view.
void reply_drawn(contract::ReadContext& ctx, uint64_t count, Draw draw);

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
  Draw draw = make_draw();
  announce(count);
  reply_drawn(ctx, count, std::move(draw));
}

}  // namespace ingot::commands

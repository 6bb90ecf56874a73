// What the commands that pick elements at random share: the dice, and replies of many draws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "src/contract/context.h"
#include "src/data/piece_source.h"

namespace ingot::commands {

// More draws than this are no longer a short command.
inline constexpr uint64_t kShortDraws = 32;
// A reply with more draws is streamed.
inline constexpr uint64_t kHeldDraws = 512;
// One that cannot be streamed (inside a transaction that writes) holds no more.
inline constexpr uint64_t kHeldDrawsMax = 1 << 20;

using Random = std::mt19937_64;

// Each thread's own.
Random& dice();

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
  const bool holds_many = count > kHeldDraws && !ctx.view;
  if ((walks || holds_many) && !ctx.keys.data().begin_walk()) return;
  if (holds_many && count > kHeldDrawsMax) return ctx.reply.error("ERR value is out of range");
  const Draw draw = make_draw();
  announce(count);
  if (count <= kHeldDraws || !ctx.view) return draw(ctx.keys.data(), count, ctx.reply);
  ctx.reply.elements(stream_draws(ctx, count, draw));
}

}  // namespace ingot::commands

// Places as members of sorted sets: GEOADD, GEODIST, GEOHASH, GEOPOS.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/geo_query.h"
#include "src/commands/zset_addition.h"
#include "src/types/geo_hash.h"

namespace ingot::commands {
namespace {

using types::GeoPlace;

AddOptions read_add_options(ArgReader& reader) {
  AddOptions options;
  while (reader.flag({{"nx", &options.nx}, {"xx", &options.xx}, {"ch", &options.changed}})) {
  }
  return options;
}

// As ZADD: a place is a score.
void tell_scores(WriteContext& ctx, Args before, Args places, const std::vector<double>& scores) {
  std::vector<std::string> numbers;
  for (const double score : scores) numbers.push_back(fmt::format("{:.0f}", score));
  std::vector<std::string_view> words(before.begin(), before.end());
  words.front() = "ZADD";
  for (size_t i = 0; i < numbers.size(); ++i) {
    words.push_back(numbers[i]);
    words.push_back(places[3 * i + 2]);
  }
  ctx.tell(words);
}

void geoadd(WriteContext& ctx, Args args) {
  ArgReader reader(args, 2);
  const AddOptions options = read_add_options(reader);
  const Args places = reader.rest();
  if (places.empty() || places.size() % 3 != 0 || (options.nx && options.xx)) {
    return ctx.reply.error(contract::error::kSyntax);
  }
  std::vector<double> scores;
  while (reader.more()) {
    const types::GeoPlace place = read_geo_place(reader);
    if (reader.failed()) break;
    scores.push_back(static_cast<double>(types::geo_score(place)));
    (void)reader.text();  // the member
  }
  if (reader.failed()) return ctx.reply.error(reader.error());
  auto set = open_zset(ctx, args[1]);
  if (!set) return;
  const auto change = add_members(ctx, args[1], set, {places, 3}, scores, options);
  if (!change) return;
  ctx.changes = change->changes;
  if (change->changes != 0 && ctx.tells()) {
    tell_scores(ctx, args.first(args.size() - places.size()), places, scores);
  }
  ctx.reply.integer(change->answer);
}

void geodist(ReadContext& ctx, Args args) {
  if (args.size() > 5) return ctx.reply.error(contract::error::kSyntax);
  ArgReader reader(args, 4);
  const double unit_m = reader.more() ? read_geo_unit(reader) : 1;
  if (reader.failed()) return ctx.reply.error(reader.error());
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  const std::optional<double> from = set->score(args[2]);
  const std::optional<double> to = set->score(args[3]);
  if (!from || !to) return ctx.reply.null();
  char text[32];
  const double metres = types::geo_distance(types::geo_place(*from), types::geo_place(*to));
  const int length = std::snprintf(text, sizeof(text), "%.4f", metres / unit_m);
  ctx.reply.bulk({text, static_cast<size_t>(length)});
}

// Answers something of the place of each member, null for those that are not there.
void reply_places(ReadContext& ctx, Args args, void (*reply_place)(ReadContext&, const GeoPlace&),
                  void (*reply_nothing)(ReadContext&)) {
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  ctx.reply.array(args.size() - 2);
  for (std::string_view member : args.subspan(2)) {
    const std::optional<double> score = set->score(member);
    score ? reply_place(ctx, types::geo_place(*score)) : reply_nothing(ctx);
  }
}

void geohash(ReadContext& ctx, Args args) {
  reply_places(
      ctx, args,
      [](ReadContext& c, const GeoPlace& place) { c.reply.bulk(types::geo_letters(place)); },
      [](ReadContext& c) { c.reply.null(); });
}

void geopos(ReadContext& ctx, Args args) {
  reply_places(
      ctx, args,
      [](ReadContext& c, const GeoPlace& place) {
        c.reply.array(2);
        c.reply.decimal(place.longitude);
        c.reply.decimal(place.latitude);
      },
      [](ReadContext& c) { c.reply.null_array(); });
}

constexpr CommandRow kTable[] = {
    {.name = "geoadd",
     .arity = -5,
     .flags = flag::kWrite | flag::kDenyOom,
     .keys = {key_at(1, key::kRw | key::kUpdate)},
     .since = "3.2.0",
     .complexity = "O(log(N)) for each place, with N members",
     .summary = "Add places to a sorted set, or move them",
     .history = "6.2.0: `CH`, `NX` and `XX`.",
     .arguments = "key:key#0 condition:oneof@6.2.0?(nx:pure-token=NX xx:pure-token=XX) "
                  "change:pure-token=CH@6.2.0? longitude_latitude_member:block*(longitude:double "
                  "latitude:double member:string)",
     .handler = geoadd},
    {.name = "geodist",
     .arity = -4,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "3.2.0",
     .complexity = "O(log(N)) with N members",
     .summary = "Answer how far two places are from each other",
     .arguments = "key:key#0 member1:string member2:string unit:oneof?(m:pure-token=M "
                  "km:pure-token=KM ft:pure-token=FT mi:pure-token=MI)",
     .handler = geodist},
    {.name = "geohash",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "3.2.0",
     .complexity = "O(log(N)) for each member, with N members",
     .summary = "Answer the geohashes of places",
     .arguments = "key:key#0 member:string*",
     .handler = geohash},
    {.name = "geopos",
     .arity = -2,
     .flags = flag::kReadonly,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .since = "3.2.0",
     .complexity = "O(log(N)) for each member, with N members",
     .summary = "Answer longitude and latitude of places",
     .arguments = "key:key#0 member:string*",
     .handler = geopos},
};
constexpr auto kRows = contract::family(kGeoFamily, kTable);

}  // namespace

std::span<const CommandRow> geo_rows() {
  return kRows;
}

}  // namespace ingot::commands

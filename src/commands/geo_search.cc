// Searches around a place: GEORADIUS, GEORADIUSBYMEMBER, their read-only forms, GEOSEARCH,
// GEOSEARCHSTORE.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/command/context.h"
#include "src/commands/families.h"
#include "src/commands/geo_query.h"
#include "src/commands/zset_key.h"

namespace ingot::commands {
namespace {

namespace acl = command::acl;
namespace flag = command::flag;
namespace key = command::key;
namespace notify = types::notify;
using command::Args;
using command::CommandRow;
using command::key_at;
using command::ReadContext;
using command::ReplySink;
using command::WriteContext;
using types::Found;
using types::Record;
using Form = GeoQuery::Form;

void reply_match(ReplySink& reply, const GeoMatch& match, const GeoQuery& query) {
  const int extras = query.with_distance + query.with_hash + query.with_place;
  if (extras > 0) reply.array(static_cast<uint64_t>(extras) + 1);
  reply.bulk(match.member);
  if (query.with_distance) {
    char text[400];
    const int length = std::snprintf(text, sizeof(text), "%.4f", match.distance);
    reply.bulk({text, static_cast<size_t>(length)});
  }
  if (query.with_hash) reply.integer(static_cast<int64_t>(match.score));
  if (query.with_place) {
    reply.array(2);
    reply.decimal(match.place.longitude);
    reply.decimal(match.place.latitude);
  }
}

// The query and what it matches; nothing when the reply is made already, or the disk failed.
struct Answer {
  GeoQuery query;
  std::vector<GeoMatch> matches;
};

template <typename Context>
std::optional<Answer> search(Context& ctx, Args args, Form form, bool may_store) {
  Record record;
  Found found;
  const std::string_view source = form == Form::kSearchStore ? args[2] : args[1];
  auto set = read_zset(ctx, source, &record, &found);
  if (found == Found::kWrongType) return std::nullopt;
  const auto query = parse_geo_query(ctx.reply, args, form, may_store, set ? &*set : nullptr);
  if (!query) return std::nullopt;
  if (!set) return Answer{.query = *query, .matches = {}};
  if (set->is_large() && !ctx.keys.data().begin_walk()) return std::nullopt;
  return Answer{.query = *query, .matches = find_geo_matches(*set, *query)};
}

void reply_matches(ReplySink& reply, const Answer& answer) {
  reply.array(answer.matches.size());
  for (const GeoMatch& match : answer.matches) reply_match(reply, match, answer.query);
}

void store_matches(WriteContext& ctx, const Answer& answer, std::string_view event) {
  const std::string_view target = *answer.query.store;
  Record before;
  const bool exists = ctx.keys.peek(ctx.db, target, &before);
  types::SortedSetWriter set(ctx.keys, ctx.db, target, exists ? &before : nullptr, zset_limits(ctx),
                             /*fresh=*/true);
  for (const GeoMatch& match : answer.matches) {
    set.put(match.member, answer.query.store_distance ? match.distance : match.score);
  }
  if (set.finish()) {
    ctx.keys.notify(notify::kZset, event, ctx.db, target);
  } else if (exists) {
    ctx.keys.notify(notify::kGeneric, "del", ctx.db, target);
  }
  ctx.reply.integer(static_cast<int64_t>(answer.matches.size()));
}

void read_or_store(WriteContext& ctx, Args args, Form form) {
  const auto answer = search(ctx, args, form, /*may_store=*/true);
  if (!answer) return;
  if (!answer->query.store) return reply_matches(ctx.reply, *answer);
  store_matches(ctx, *answer, form == Form::kSearchStore ? "geosearchstore" : "georadiusstore");
}

void read_only(ReadContext& ctx, Args args, Form form) {
  const auto answer = search(ctx, args, form, /*may_store=*/false);
  if (answer) reply_matches(ctx.reply, *answer);
}

void georadius(WriteContext& ctx, Args args) {
  read_or_store(ctx, args, Form::kRadius);
}
void georadiusbymember(WriteContext& ctx, Args args) {
  read_or_store(ctx, args, Form::kRadiusByMember);
}
void geosearchstore(WriteContext& ctx, Args args) {
  read_or_store(ctx, args, Form::kSearchStore);
}
void georadius_ro(ReadContext& ctx, Args args) {
  read_only(ctx, args, Form::kRadius);
}
void georadiusbymember_ro(ReadContext& ctx, Args args) {
  read_only(ctx, args, Form::kRadiusByMember);
}
void geosearch(ReadContext& ctx, Args args) {
  read_only(ctx, args, Form::kSearch);
}

const CommandRow* georadius_for_reading(Args args);
const CommandRow* georadiusbymember_for_reading(Args args);

constexpr CommandRow kRows[] = {
    {.name = "georadius",
     .arity = -6,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .acl = acl::kWrite | acl::kGeo | acl::kSlow,
     .keys = {key_at(1, key::kRo | key::kAccess),
              {.flags = key::kOw | key::kUpdate,
               .keyword = "STORE",
               .begin = 6,
               .last = 0,
               .step = 1,
               .limit = 0},
              {.flags = key::kOw | key::kUpdate,
               .keyword = "STOREDIST",
               .begin = 6,
               .last = 0,
               .step = 1,
               .limit = 0}},
     .group = "geo",
     .since = "3.2.0",
     .complexity = "O(N+log(M)) with N members in the cells around the place, of M",
     .summary = "Answer or store the members within a distance of a place",
     .deprecated_since = "6.2.0",
     .replaced_by = "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
     .history = "6.2.0: `ANY` with `COUNT`.; 7.0.0: Added support for uppercase "
                "unit names.",
     .arguments = "key:key#0 longitude:double latitude:double radius:double "
                  "unit:oneof(m:pure-token=M km:pure-token=KM ft:pure-token=FT mi:pure-token=MI) "
                  "withcoord:pure-token=WITHCOORD? withdist:pure-token=WITHDIST? "
                  "withhash:pure-token=WITHHASH? count:block?(count:integer=COUNT "
                  "any:pure-token=ANY@6.2.0?) order:oneof?(asc:pure-token=ASC "
                  "desc:pure-token=DESC) key:key=STORE#1? key:key=STOREDIST#2?",
     .handler = georadius,
     .instead = georadius_for_reading},
    {.name = "georadiusbymember",
     .arity = -5,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .acl = acl::kWrite | acl::kGeo | acl::kSlow,
     .keys = {key_at(1, key::kRo | key::kAccess),
              {.flags = key::kOw | key::kUpdate,
               .keyword = "STORE",
               .begin = 5,
               .last = 0,
               .step = 1,
               .limit = 0},
              {.flags = key::kOw | key::kUpdate,
               .keyword = "STOREDIST",
               .begin = 5,
               .last = 0,
               .step = 1,
               .limit = 0}},
     .group = "geo",
     .since = "3.2.0",
     .complexity = "O(N+log(M)) with N members in the cells around the place, of M",
     .summary = "Answer or store the members within a distance of a member",
     .deprecated_since = "6.2.0",
     .replaced_by =
         "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
     .history = "7.0.0: Units in upper case.",
     .arguments =
         "key:key#0 member:string radius:double unit:oneof(m:pure-token=M km:pure-token=KM "
         "ft:pure-token=FT mi:pure-token=MI) withcoord:pure-token=WITHCOORD? "
         "withdist:pure-token=WITHDIST? withhash:pure-token=WITHHASH? "
         "count:block?(count:integer=COUNT any:pure-token=ANY?) order:oneof?(asc:pure-token=ASC "
         "desc:pure-token=DESC) key:key=STORE#1? key:key=STOREDIST#2?",
     .handler = georadiusbymember,
     .instead = georadiusbymember_for_reading},
    {.name = "georadius_ro",
     .arity = -6,
     .flags = flag::kReadonly,
     .acl = acl::kRead | acl::kGeo | acl::kSlow,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .group = "geo",
     .since = "3.2.10",
     .complexity = "O(N+log(M)) with N members in the cells around the place, of M",
     .summary = "Answer the members within a distance of a place",
     .deprecated_since = "6.2.0",
     .replaced_by = "`GEOSEARCH` with the `BYRADIUS` argument",
     .history = "6.2.0: `ANY` with `COUNT`.",
     .arguments =
         "key:key#0 longitude:double latitude:double radius:double unit:oneof(m:pure-token=M "
         "km:pure-token=KM ft:pure-token=FT mi:pure-token=MI) withcoord:pure-token=WITHCOORD? "
         "withdist:pure-token=WITHDIST? withhash:pure-token=WITHHASH? "
         "count:block?(count:integer=COUNT any:pure-token=ANY@6.2.0?) "
         "order:oneof?(asc:pure-token=ASC desc:pure-token=DESC)",
     .handler = georadius_ro},
    {.name = "georadiusbymember_ro",
     .arity = -5,
     .flags = flag::kReadonly,
     .acl = acl::kRead | acl::kGeo | acl::kSlow,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .group = "geo",
     .since = "3.2.10",
     .complexity = "O(N+log(M)) with N members in the cells around the place, of M",
     .summary = "Answer the members within a distance of a member",
     .deprecated_since = "6.2.0",
     .replaced_by = "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
     .arguments = "key:key#0 member:string radius:double unit:oneof(m:pure-token=M "
                  "km:pure-token=KM ft:pure-token=FT mi:pure-token=MI) "
                  "withcoord:pure-token=WITHCOORD? withdist:pure-token=WITHDIST? "
                  "withhash:pure-token=WITHHASH? count:block?(count:integer=COUNT "
                  "any:pure-token=ANY?) order:oneof?(asc:pure-token=ASC desc:pure-token=DESC)",
     .handler = georadiusbymember_ro},
    {.name = "geosearch",
     .arity = -7,
     .flags = flag::kReadonly,
     .acl = acl::kRead | acl::kGeo | acl::kSlow,
     .keys = {key_at(1, key::kRo | key::kAccess)},
     .group = "geo",
     .since = "6.2.0",
     .complexity = "O(N+log(M)) with N members in the cells around the place, of M",
     .summary = "Answer the members within a circle or a box",
     .history = "7.0.0: Units in upper case.",
     .arguments =
         "key:key#0 from:oneof(member:string=FROMMEMBER "
         "longitude_latitude:block=FROMLONLAT(longitude:double latitude:double)) "
         "by:oneof(circle:block(radius:double=BYRADIUS unit:oneof(m:pure-token=M km:pure-token=KM "
         "ft:pure-token=FT mi:pure-token=MI)) box:block(width:double=BYBOX height:double "
         "unit:oneof(m:pure-token=M km:pure-token=KM ft:pure-token=FT mi:pure-token=MI))) "
         "order:oneof?(asc:pure-token=ASC desc:pure-token=DESC) count:block?(count:integer=COUNT "
         "any:pure-token=ANY?) withcoord:pure-token=WITHCOORD? withdist:pure-token=WITHDIST? "
         "withhash:pure-token=WITHHASH?",
     .handler = geosearch},
    {.name = "geosearchstore",
     .arity = -8,
     .flags = flag::kWrite | flag::kDenyOom,
     .acl = acl::kWrite | acl::kGeo | acl::kSlow,
     .keys = {key_at(1, key::kOw | key::kUpdate), key_at(2, key::kRo | key::kAccess)},
     .group = "geo",
     .since = "6.2.0",
     .complexity = "O(N+log(M)) with N members in the cells around the place, of M",
     .summary = "Store the members within a circle or a box",
     .history = "7.0.0: Units in upper case.",
     .arguments =
         "destination:key#0 source:key#1 from:oneof(member:string=FROMMEMBER "
         "longitude_latitude:block=FROMLONLAT(longitude:double latitude:double)) "
         "by:oneof(circle:block(radius:double=BYRADIUS unit:oneof(m:pure-token=M km:pure-token=KM "
         "ft:pure-token=FT mi:pure-token=MI)) box:block(width:double=BYBOX height:double "
         "unit:oneof(m:pure-token=M km:pure-token=KM ft:pure-token=FT mi:pure-token=MI))) "
         "order:oneof?(asc:pure-token=ASC desc:pure-token=DESC) count:block?(count:integer=COUNT "
         "any:pure-token=ANY?) storedist:pure-token=STOREDIST?",
     .handler = geosearchstore},
};

constexpr CommandRow kGeoradiusReading = command::variant_of(kRows[0], georadius_ro);
constexpr CommandRow kGeoradiusbymemberReading =
    command::variant_of(kRows[1], georadiusbymember_ro);

bool stores(Args args) {
  return std::ranges::any_of(args.subspan(1), [](std::string_view word) {
    return command::equals_ignore_case(word, "store") ||
           command::equals_ignore_case(word, "storedist");
  });
}

const CommandRow* georadius_for_reading(Args args) {
  return stores(args) ? nullptr : &kGeoradiusReading;
}
const CommandRow* georadiusbymember_for_reading(Args args) {
  return stores(args) ? nullptr : &kGeoradiusbymemberReading;
}

}  // namespace

std::span<const CommandRow> geo_search_rows() {
  return kRows;
}

}  // namespace ingot::commands

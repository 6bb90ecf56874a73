// Searches around a place: GEORADIUS, GEORADIUSBYMEMBER, their read-only forms, GEOSEARCH,
// GEOSEARCHSTORE.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/commands/families.h"
#include "src/commands/geo_query.h"
#include "src/commands/sorted_reply.h"
#include "src/commands/store_result.h"
#include "src/commands/zset_key.h"
#include "src/contract/thresholds.h"
#include "src/data/spill_sort.h"
#include "src/types/sorted_set_builder.h"
#include "src/types/sorted_set_bytes.h"

namespace ingot::commands {
namespace {

using data::SpillSort;
using types::Record;
using Form = GeoQuery::Form;

// A match as an item to be sorted: the key is the distance, where that matters, and the order in
// which it was found; the value is score (u64le) | distance (u64le) | member.
std::string key_of(GeoQuery::Sort sort, double distance, uint64_t number) {
  std::string key;
  const uint64_t bits = types::ordered_bits(distance);
  if (sort != GeoQuery::Sort::kNone) {
    storage::append_be64(&key, sort == GeoQuery::Sort::kAscending ? bits : ~bits);
  }
  storage::append_be64(&key, number);
  return key;
}

std::string value_of(const GeoMatch& match) {
  std::string value;
  storage::append_le64(&value, std::bit_cast<uint64_t>(match.score));
  storage::append_le64(&value, std::bit_cast<uint64_t>(match.distance));
  return value.append(match.member);
}

GeoMatch match_of(std::string_view value) {
  return {.member = value.substr(16),
          .score = std::bit_cast<double>(storage::read_le64(value)),
          .distance = std::bit_cast<double>(storage::read_le64(value.substr(8)))};
}

void write_match(ReplySink& reply, const GeoMatch& match, const GeoQuery& query) {
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
    const types::GeoPlace place = types::geo_place(match.score);
    reply.array(2);
    reply.decimal(place.longitude);
    reply.decimal(place.latitude);
  }
}

// Of a sorted search with a small COUNT: how far the matches are that are the best so far. Others
// need not be sorted.
class Best {
 public:
  explicit Best(const GeoQuery& query)
      : sign_(query.sort == GeoQuery::Sort::kDescending ? -1 : 1),
        size_(query.sort == GeoQuery::Sort::kNone || query.count > contract::kHeldElements
                  ? 0
                  : query.count) {}

  // Whether a match, found after those before, may be among them.
  bool takes(double distance) {
    if (size_ == 0) return true;
    if (worst_first_.size() == size_) {
      if (sign_ * distance >= worst_first_.top()) return false;
      worst_first_.pop();
    }
    worst_first_.push(sign_ * distance);
    return true;
  }

 private:
  const double sign_;
  const size_t size_;  // 0: all are wanted
  std::priority_queue<double> worst_first_;
};

// All that matches, in the order in which it is to be answered; with COUNT perhaps too much.
std::shared_ptr<SpillSort> find_matches(data::Services& services, storage::Reader& data,
                                        types::SortedSetReader& set, const GeoQuery& query) {
  auto matches = std::make_shared<SpillSort>(services);
  Best best(query);
  if (query.count > 0) matches->keep_first(query.count);
  walk_geo_matches(set, query, [&](const GeoMatch& match) {
    if (!best.takes(match.distance)) return true;
    matches->add(key_of(query.sort, match.distance, matches->size()), value_of(match));
    return !query.any || matches->size() < query.count;
  });
  const storage::Status status = matches->finish();
  if (!status.ok()) data.latch_error(status);
  return matches;
}

uint64_t wanted(const SpillSort& matches, const GeoQuery& query) {
  return query.count == 0 ? matches.size() : std::min(query.count, matches.size());
}

auto writer_of(const GeoQuery& query) {
  return [query](storage::Reader&, std::string_view, std::string_view value, ReplySink& reply) {
    write_match(reply, match_of(value), query);
  };
}

void read_only(ReadContext& ctx, Args args, Form form) {
  auto set = read_zset(ctx, args[1]);
  if (!set) return;
  const auto query =
      parse_geo_query(ctx.reply, args, form, /*may_store=*/false, set.exists() ? &*set : nullptr);
  if (!query) return;
  if (!set.exists()) return ctx.reply.array(0);
  if (set->is_large() && !ctx.keys.data().begin_walk(set->size())) return;
  const auto matches = find_matches(ctx.data, ctx.keys.data(), *set, *query);
  const uint64_t count = wanted(*matches, *query);
  ctx.reply.array(count);
  reply_sorted(ctx, matches, {.count = count}, writer_of(*query));
}

types::BuiltValue build_matches(data::Services& services, storage::Reader& data,
                                types::SortedSetReader& set, const GeoQuery& query,
                                const types::SortedSetLimits& limits,
                                const types::PutElement& put) {
  const auto matches = find_matches(services, data, set, query);
  SpillSort items(services);  // of the set to be stored
  uint64_t left = wanted(*matches, query);
  size_t longest = 0;
  storage::Status status = matches->walk({}, [&](std::string_view, std::string_view value) {
    if (left == 0) return false;
    const GeoMatch match = match_of(value);
    longest = std::max(longest, match.member.size());
    items.add(types::item_of(query.store_distance ? match.distance : match.score, match.member),
              {});
    return --left != 0;
  });
  if (status.ok()) status = items.finish();
  types::SortedSetBuilder target(limits, put);
  target.expect(items.size(), longest);
  if (status.ok()) {
    status = items.walk({}, [&](std::string_view item, std::string_view) {
      target.add(item.substr(types::kScoreBytes), types::score_of(item, false));
      return true;
    });
  }
  if (!status.ok()) data.latch_error(status);
  return target.finish();
}

void store_matches(WriteContext& ctx, Args args, Form form) {
  const size_t source = form == Form::kSearchStore ? 2 : 1;
  auto set = read_zset(ctx, args[source]);
  if (!set) return;
  const auto query =
      parse_geo_query(ctx.reply, args, form, /*may_store=*/true, set.exists() ? &*set : nullptr);
  if (!query) return;
  if (!query->store) {  // a key or a member has the name of the option
    if (!set.exists()) return ctx.reply.array(0);
    const auto matches = find_matches(ctx.data, ctx.keys.data(), *set, *query);
    const uint64_t count = wanted(*matches, *query);
    ctx.reply.array(count);
    return write_sorted(ctx.keys.data(), *matches, {.count = count}, writer_of(*query), ctx.reply);
  }
  store_result(
      ctx,
      {.target = *query->store,
       .recipe = {.sources = args.subspan(source, 1),
                  .is_large =
                      set.exists() && count_geo_candidates(*set, *query) > contract::kMadeByWriter},
       .kind = notify::kZset,
       .event = form == Form::kSearchStore ? "geosearchstore" : "georadiusstore",
       .counts_elements = true},
      [&services = ctx.data, db = ctx.db, limits = zset_limits(ctx), name = args[source],
       given = *query](types::KeyReader& keys, const types::PutElement& put) -> types::BuiltValue {
        Record record;
        if (types::find_as(keys, db, name, storage::ValueType::kSortedSet, &record) !=
            types::Found::kYes) {
          return {};
        }
        types::SortedSetReader from(keys.data(), record);
        GeoQuery moved = given;
        // The member may be elsewhere by now. If it has gone, the command runs again and says so.
        if (!find_geo_center(from, &moved)) return {};
        return build_matches(services, keys.data(), from, moved, limits, put);
      });
}

void georadius(WriteContext& ctx, Args args) {
  store_matches(ctx, args, Form::kRadius);
}
void georadiusbymember(WriteContext& ctx, Args args) {
  store_matches(ctx, args, Form::kRadiusByMember);
}
void geosearchstore(WriteContext& ctx, Args args) {
  store_matches(ctx, args, Form::kSearchStore);
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

constexpr contract::OptionWord kRadiusOptions[] = {{"store", 1}, {"storedist", 1}};

constexpr CommandRow kTable[] = {
    {.name = "georadius",
     .arity = -6,
     .flags = flag::kWrite | flag::kDenyOom | flag::kMovableKeys,
     .keys = {key_at(1, key::kRo | key::kAccess),
              {.flags = key::kOw | key::kUpdate,
               .keyword = "STORE",
               .begin = 6,
               .options_begin = 6,
               .options = kRadiusOptions},
              {.flags = key::kOw | key::kUpdate,
               .keyword = "STOREDIST",
               .begin = 6,
               .options_begin = 6,
               .options = kRadiusOptions}},
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
     .keys = {key_at(1, key::kRo | key::kAccess),
              {.flags = key::kOw | key::kUpdate,
               .keyword = "STORE",
               .begin = 5,
               .options_begin = 5,
               .options = kRadiusOptions},
              {.flags = key::kOw | key::kUpdate,
               .keyword = "STOREDIST",
               .begin = 5,
               .options_begin = 5,
               .options = kRadiusOptions}},
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
     .keys = {key_at(1, key::kRo | key::kAccess)},
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
     .keys = {key_at(1, key::kRo | key::kAccess)},
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
     .keys = {key_at(1, key::kRo | key::kAccess)},
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
     .keys = {key_at(1, key::kOw | key::kUpdate), key_at(2, key::kRo | key::kAccess)},
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
constexpr auto kRows = contract::family(kGeoFamily, kTable);

constexpr CommandRow kGeoradiusReading = contract::variant_of(kRows[0], georadius_ro);
constexpr CommandRow kGeoradiusbymemberReading =
    contract::variant_of(kRows[1], georadiusbymember_ro);

bool stores(Args args) {
  return std::ranges::any_of(args.subspan(1), [](std::string_view word) {
    return contract::equals_ignore_case(word, "store") ||
           contract::equals_ignore_case(word, "storedist");
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

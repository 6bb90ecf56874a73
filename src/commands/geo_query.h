// What the commands that search around a place are asked for: GEORADIUS, GEOSEARCH and their
// relatives, parsed in the order and with the errors of Redis.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/contract/args.h"
#include "src/contract/reply.h"
#include "src/types/geo_shape.h"
#include "src/types/sorted_set_value.h"

namespace ingot::commands {

// Longitude and latitude.
types::GeoPlace read_geo_place(contract::ArgReader& reader);
// Metres in a unit: m, km, ft, mi.
double read_geo_unit(contract::ArgReader& reader);

struct GeoQuery {
  // What the command takes.
  enum class Form : uint8_t { kRadius, kRadiusByMember, kSearch, kSearchStore };
  enum class Sort : uint8_t { kNone, kAscending, kDescending };

  types::GeoShape shape;
  std::optional<std::string_view> center_member;  // whose place is the shape's centre
  double unit_m = 1;
  bool with_distance = false;
  bool with_hash = false;
  bool with_place = false;
  Sort sort = Sort::kNone;
  uint64_t count = 0;  // 0: all
  bool any = false;    // the first `count` that are found
  std::optional<std::string_view> store;
  bool store_distance = false;
};

// `source` null: the key is not there; members are not looked for then. `may_store` false: the
// command has no STORE. Nothing when the error has been answered.
std::optional<GeoQuery> parse_geo_query(contract::ReplySink& reply, contract::Args args,
                                        GeoQuery::Form form, bool may_store,
                                        types::SortedSetReader* source);

// Moves the centre to where its member is in `source` now. False: it is not there.
[[nodiscard]] bool find_geo_center(types::SortedSetReader& source, GeoQuery* query);

struct GeoMatch {
  std::string_view member;
  double score;
  double distance;  // in the query's unit
};

// How many members have to be looked at.
uint64_t count_geo_candidates(types::SortedSetReader& source, const GeoQuery& query);
// Calls `each` with what matches, as it is found, until it returns false.
void walk_geo_matches(types::SortedSetReader& source, const GeoQuery& query,
                      const std::function<bool(const GeoMatch& match)>& each);

}  // namespace ingot::commands

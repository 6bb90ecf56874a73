// The parser of a search's arguments, option by option, and the walk over the cells that it covers.
#include "src/commands/geo_query.h"

#include <algorithm>
#include <cstdio>

namespace ingot::commands {

using contract::Args;
using contract::equals_ignore_case;
using contract::parse_double;
using contract::ReplySink;
using types::GeoPlace;
using Form = GeoQuery::Form;
using Sort = GeoQuery::Sort;

namespace {

// A length that is not negative, in the unit that it was given in.
std::optional<double> length_argument(ReplySink& reply, std::string_view text,
                                      std::string_view not_number) {
  const std::optional<double> length = parse_double(text);
  if (!length) reply.error(not_number);
  return length;
}

class QueryParser {
 public:
  QueryParser(ReplySink& reply, Args args, Form form, bool may_store,
              types::SortedSetReader* source)
      : reply_(reply), args_(args), form_(form), may_store_(may_store), source_(source) {}

  bool parse() {
    if (!fixed_arguments()) return false;
    while (next_ < args_.size()) {
      if (!option(args_[next_++])) return false;
    }
    return is_consistent();
  }
  const GeoQuery& query() const { return query_; }

 private:
  bool is_search() const { return form_ == Form::kSearch || form_ == Form::kSearchStore; }
  size_t left() const { return args_.size() - next_; }
  std::string_view take() { return args_[next_++]; }
  bool refuse(std::string_view error) {
    reply_.error(error);
    return false;
  }

  bool fixed_arguments();
  bool option(std::string_view word);
  bool flag(std::string_view word);
  bool store_option(std::string_view word, bool* known);
  bool search_option(std::string_view word, bool* known);
  bool count();
  bool from_member();
  bool from_place();
  bool by_radius();
  bool by_box();
  bool is_consistent();

  ReplySink& reply_;
  const Args args_;
  const Form form_;
  const bool may_store_;
  types::SortedSetReader* const source_;
  size_t next_ = 2;
  GeoQuery query_;
  bool has_center_ = false;
  bool center_is_member_ = false;
  bool has_radius_ = false;
  bool has_box_ = false;
};

// What stands between the key and the options.
bool QueryParser::fixed_arguments() {
  switch (form_) {
    case Form::kRadius:
      return from_place() && by_radius();
    case Form::kRadiusByMember:
      if (source_ == nullptr) {
        next_ = 5;
        return true;
      }
      return from_member() && by_radius();
    case Form::kSearchStore:
      query_.store = args_[1];
      next_ = 3;
      return true;
    case Form::kSearch:
      return true;
  }
  return true;
}

bool QueryParser::flag(std::string_view word) {
  struct Flag {
    std::string_view word;
    bool GeoQuery::*member;
  };
  constexpr Flag kFlags[] = {{"withdist", &GeoQuery::with_distance},
                             {"withhash", &GeoQuery::with_hash},
                             {"withcoord", &GeoQuery::with_place},
                             {"any", &GeoQuery::any}};
  for (const Flag& known : kFlags) {
    if (!equals_ignore_case(word, known.word)) continue;
    query_.*known.member = true;
    return true;
  }
  const bool ascending = equals_ignore_case(word, "asc");
  if (!ascending && !equals_ignore_case(word, "desc")) return false;
  query_.sort = ascending ? Sort::kAscending : Sort::kDescending;
  return true;
}

bool QueryParser::option(std::string_view word) {
  if (flag(word)) return true;
  if (equals_ignore_case(word, "count") && left() >= 1) return count();
  bool known = true;
  const bool parsed = is_search() ? search_option(word, &known) : store_option(word, &known);
  return known ? parsed : refuse(contract::error::kSyntax);
}

bool QueryParser::store_option(std::string_view word, bool* known) {
  const bool distance = equals_ignore_case(word, "storedist");
  *known = may_store_ && left() >= 1 && (distance || equals_ignore_case(word, "store"));
  if (!*known) return false;
  query_.store = take();
  query_.store_distance = distance;
  return true;
}

bool QueryParser::search_option(std::string_view word, bool* known) {
  const bool by_place = has_center_ && !center_is_member_;
  const bool by_member = has_center_ && center_is_member_;
  if (equals_ignore_case(word, "frommember") && left() >= 1 && !by_place) return from_member();
  if (equals_ignore_case(word, "fromlonlat") && left() >= 2 && !by_member) return from_place();
  if (equals_ignore_case(word, "byradius") && left() >= 2 && !has_box_) return by_radius();
  if (equals_ignore_case(word, "bybox") && left() >= 3 && !has_radius_) return by_box();
  *known = form_ == Form::kSearchStore && equals_ignore_case(word, "storedist");
  query_.store_distance = query_.store_distance || *known;
  return *known;
}

bool QueryParser::count() {
  const std::optional<int64_t> count = contract::parse_integer(take());
  if (!count) return refuse(contract::error::kNotInteger);
  if (*count <= 0) return refuse("ERR COUNT must be > 0");
  query_.count = static_cast<uint64_t>(*count);
  return true;
}

bool QueryParser::from_member() {
  const std::string_view member = take();
  has_center_ = center_is_member_ = true;
  if (source_ == nullptr) return true;
  const std::optional<double> score = source_->score(member);
  if (!score) return refuse("ERR could not decode requested zset member");
  query_.shape.center = types::geo_place(*score);
  return true;
}

bool QueryParser::from_place() {
  const std::string_view longitude = take();
  const auto place = geo_place_argument(reply_, longitude, take());
  if (!place) return false;
  has_center_ = true;
  query_.shape.center = *place;
  return true;
}

bool QueryParser::by_radius() {
  const auto radius = length_argument(reply_, take(), "ERR need numeric radius");
  if (!radius) return false;
  if (*radius < 0) return refuse("ERR radius cannot be negative");
  const auto unit = geo_unit_argument(reply_, take());
  if (!unit) return false;
  has_radius_ = true;
  query_.unit_m = *unit;
  query_.shape.radius_m = *radius * *unit;
  return true;
}

bool QueryParser::by_box() {
  const auto width = length_argument(reply_, take(), "ERR need numeric width");
  if (!width) return false;
  const auto height = length_argument(reply_, take(), "ERR need numeric height");
  if (!height) return false;
  if (*width < 0 || *height < 0) return refuse("ERR height or width cannot be negative");
  const auto unit = geo_unit_argument(reply_, take());
  if (!unit) return false;
  has_box_ = true;
  query_.unit_m = *unit;
  query_.shape.is_box = true;
  query_.shape.width_m = *width * *unit;
  query_.shape.height_m = *height * *unit;
  return true;
}

bool QueryParser::is_consistent() {
  if (query_.store && (query_.with_distance || query_.with_hash || query_.with_place)) {
    return refuse(form_ == Form::kSearchStore
                      ? "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and "
                        "WITHCOORD options"
                      : "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH "
                        "and WITHCOORD options");
  }
  const std::string name(args_[0]);
  if (is_search() && !has_center_) {
    return refuse("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name);
  }
  if (is_search() && !has_radius_ && !has_box_) {
    return refuse("ERR exactly one of BYRADIUS and BYBOX can be specified for " + name);
  }
  if (query_.any && query_.count == 0)
    return refuse("ERR the ANY argument requires COUNT argument");
  // The nearest ones are meant.
  if (query_.count > 0 && query_.sort == Sort::kNone && !query_.any) {
    query_.sort = Sort::kAscending;
  }
  return true;
}

types::RankRange ranks_of(types::SortedSetReader& source, const types::GeoCell& cell) {
  const types::GeoScores scores = types::geo_scores(cell);
  return source.between({.score = static_cast<double>(scores.begin)},
                        {.score = static_cast<double>(scores.end), .exclusive = true});
}

}  // namespace

std::optional<GeoPlace> geo_place_argument(ReplySink& reply, std::string_view longitude,
                                           std::string_view latitude) {
  const std::optional<double> x = parse_double(longitude);
  const std::optional<double> y = x ? parse_double(latitude) : std::nullopt;
  if (!x || !y) {
    reply.error(contract::error::kNotFloat);
    return std::nullopt;
  }
  if (*x < -types::kGeoLongitudeMax || *x > types::kGeoLongitudeMax ||
      *y < -types::kGeoLatitudeMax || *y > types::kGeoLatitudeMax) {
    char text[1024];  // two doubles of 309 digits
    std::snprintf(text, sizeof(text), "ERR invalid longitude,latitude pair %f,%f", *x, *y);
    reply.error(text);
    return std::nullopt;
  }
  return GeoPlace{.longitude = *x, .latitude = *y};
}

std::optional<double> geo_unit_argument(ReplySink& reply, std::string_view unit) {
  struct Unit {
    std::string_view name;
    double metres;
  };
  constexpr Unit kUnits[] = {{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};
  for (const Unit& known : kUnits) {
    if (equals_ignore_case(unit, known.name)) return known.metres;
  }
  reply.error("ERR unsupported unit provided. please use M, KM, FT, MI");
  return std::nullopt;
}

std::optional<GeoQuery> parse_geo_query(ReplySink& reply, Args args, Form form, bool may_store,
                                        types::SortedSetReader* source) {
  QueryParser parser(reply, args, form, may_store, source);
  return parser.parse() ? std::optional(parser.query()) : std::nullopt;
}

uint64_t count_geo_candidates(types::SortedSetReader& source, const GeoQuery& query) {
  uint64_t count = 0;
  for (const types::GeoCell& cell : types::geo_cells(query.shape)) {
    count += ranks_of(source, cell).size();
  }
  return count;
}

void walk_geo_matches(types::SortedSetReader& source, const GeoQuery& query,
                      const std::function<bool(const GeoMatch& match)>& each) {
  bool wanted = true;
  for (const types::GeoCell& cell : types::geo_cells(query.shape)) {
    if (!wanted) return;
    source.walk(ranks_of(source, cell), false, [&](std::string_view member, double score) {
      const GeoPlace place = types::geo_place(score);
      if (const auto metres = types::geo_distance_within(query.shape, place)) {
        wanted = each({.member = member, .score = score, .distance = *metres / query.unit_m});
      }
      return wanted;
    });
  }
}

}  // namespace ingot::commands

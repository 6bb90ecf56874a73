// The parser of a search's arguments, option by option, and the walk over the cells that it covers.
#include "src/commands/geo_query.h"

#include <algorithm>
#include <cstdio>

namespace ingot::commands {

using contract::ArgReader;
using contract::Args;
using contract::ReplySink;
using types::GeoPlace;
using Form = GeoQuery::Form;
using Sort = GeoQuery::Sort;

namespace {

class QueryParser {
 public:
  QueryParser(Args args, Form form, bool may_store, types::SortedSetReader* source)
      : args_(args), form_(form), may_store_(may_store), source_(source), reader_(args, 2) {}

  void parse() {
    read_fixed_arguments();
    while (reader_.more()) {
      if (!read_option()) reader_.fail(contract::error::kSyntax);
    }
    if (!reader_.failed()) check_consistency();
  }
  const ArgReader& reader() const { return reader_; }
  const GeoQuery& query() const { return query_; }

 private:
  bool is_search() const { return form_ == Form::kSearch || form_ == Form::kSearchStore; }
  void read_fixed_arguments();
  // Each is false when the next argument is not an option that may stand there.
  bool read_option();
  bool read_store_option();
  bool read_search_option();
  void read_member();
  void read_place();
  void read_radius();
  void read_box();
  void check_consistency();

  const Args args_;
  const Form form_;
  const bool may_store_;
  types::SortedSetReader* const source_;
  ArgReader reader_;
  GeoQuery query_;
  bool has_place_ = false;
  bool has_radius_ = false;
  bool has_box_ = false;
};

// What stands between the key and the options.
void QueryParser::read_fixed_arguments() {
  switch (form_) {
    case Form::kRadius:
      read_place();
      return read_radius();
    case Form::kRadiusByMember:
      if (source_ == nullptr) {  // then Redis does not look at them
        reader_ = ArgReader(args_, 5);
        return;
      }
      read_member();
      return read_radius();
    case Form::kSearchStore:
      query_.store = args_[1];
      reader_ = ArgReader(args_, 3);
      return;
    case Form::kSearch:
      return;
  }
}

bool QueryParser::read_option() {
  if (reader_.flag({{"withdist", &query_.with_distance},
                    {"withhash", &query_.with_hash},
                    {"withcoord", &query_.with_place},
                    {"any", &query_.any}})) {
    return true;
  }
  if (const auto sort =
          reader_.choice<Sort>({{"asc", Sort::kAscending}, {"desc", Sort::kDescending}})) {
    query_.sort = *sort;
    return true;
  }
  if (reader_.word("count", 1)) {
    const int64_t count = reader_.integer();
    if (count <= 0) reader_.fail("ERR COUNT must be > 0");
    query_.count = static_cast<uint64_t>(count);
    return true;
  }
  return is_search() ? read_search_option() : read_store_option();
}

bool QueryParser::read_store_option() {
  if (!may_store_) return false;
  const bool distance = reader_.word("storedist", 1);
  if (!distance && !reader_.word("store", 1)) return false;
  query_.store = reader_.text();
  query_.store_distance = distance;
  return true;
}

bool QueryParser::read_search_option() {
  if (!has_place_ && reader_.word("frommember", 1)) {
    read_member();
  } else if (!query_.center_member && reader_.word("fromlonlat", 2)) {
    read_place();
  } else if (!has_box_ && reader_.word("byradius", 2)) {
    read_radius();
  } else if (!has_radius_ && reader_.word("bybox", 3)) {
    read_box();
  } else if (form_ == Form::kSearchStore && reader_.word("storedist")) {
    query_.store_distance = true;
  } else {
    return false;
  }
  return true;
}

void QueryParser::read_member() {
  query_.center_member = reader_.text();
  if (source_ != nullptr && !find_geo_center(*source_, &query_)) {
    reader_.fail("ERR could not decode requested zset member");
  }
}

void QueryParser::read_place() {
  has_place_ = true;
  query_.shape.center = read_geo_place(reader_);
}

void QueryParser::read_radius() {
  const double radius = reader_.real("ERR need numeric radius");
  if (radius < 0) reader_.fail("ERR radius cannot be negative");
  has_radius_ = true;
  query_.unit_m = read_geo_unit(reader_);
  query_.shape.radius_m = radius * query_.unit_m;
}

void QueryParser::read_box() {
  const double width = reader_.real("ERR need numeric width");
  const double height = reader_.real("ERR need numeric height");
  if (width < 0 || height < 0) reader_.fail("ERR height or width cannot be negative");
  has_box_ = true;
  query_.unit_m = read_geo_unit(reader_);
  query_.shape.is_box = true;
  query_.shape.width_m = width * query_.unit_m;
  query_.shape.height_m = height * query_.unit_m;
}

void QueryParser::check_consistency() {
  if (query_.store && (query_.with_distance || query_.with_hash || query_.with_place)) {
    reader_.fail(form_ == Form::kSearchStore
                     ? "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and "
                       "WITHCOORD options"
                     : "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH "
                       "and WITHCOORD options");
  }
  const std::string name(args_[0]);
  if (is_search() && !has_place_ && !query_.center_member) {
    reader_.fail("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name);
  }
  if (is_search() && !has_radius_ && !has_box_) {
    reader_.fail("ERR exactly one of BYRADIUS and BYBOX can be specified for " + name);
  }
  if (query_.any && query_.count == 0) {
    reader_.fail("ERR the ANY argument requires COUNT argument");
  }
  // The nearest ones are meant.
  if (query_.count > 0 && query_.sort == Sort::kNone && !query_.any) {
    query_.sort = Sort::kAscending;
  }
}

types::ScoreBound begin_of(const types::GeoCell& cell) {
  return {.score = static_cast<double>(types::geo_scores(cell).begin)};
}
types::ScoreBound end_of(const types::GeoCell& cell) {
  return {.score = static_cast<double>(types::geo_scores(cell).end), .exclusive = true};
}

}  // namespace

GeoPlace read_geo_place(ArgReader& reader) {
  const double x = reader.real();
  const double y = reader.real();
  if (!reader.failed() && (x < -types::kGeoLongitudeMax || x > types::kGeoLongitudeMax ||
                           y < -types::kGeoLatitudeMax || y > types::kGeoLatitudeMax)) {
    char text[1024];  // two doubles of 309 digits
    std::snprintf(text, sizeof(text), "ERR invalid longitude,latitude pair %f,%f", x, y);
    reader.fail(text);
  }
  return {.longitude = x, .latitude = y};
}

double read_geo_unit(ArgReader& reader) {
  const auto metres =
      reader.choice<double>({{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}});
  if (!metres) reader.fail("ERR unsupported unit provided. please use M, KM, FT, MI");
  return metres.value_or(1);
}

bool find_geo_center(types::SortedSetReader& source, GeoQuery* query) {
  if (!query->center_member) return true;
  const std::optional<double> score = source.score(*query->center_member);
  if (score) query->shape.center = types::geo_place(*score);
  return score.has_value();
}

std::optional<GeoQuery> parse_geo_query(ReplySink& reply, Args args, Form form, bool may_store,
                                        types::SortedSetReader* source) {
  QueryParser parser(args, form, may_store, source);
  parser.parse();
  if (!parser.reader().failed()) return parser.query();
  reply.error(parser.reader().error());
  return std::nullopt;
}

uint64_t count_geo_candidates(types::SortedSetReader& source, const GeoQuery& query) {
  uint64_t count = 0;
  for (const types::GeoCell& cell : types::geo_cells(query.shape)) {
    count += source.between(begin_of(cell), end_of(cell)).size();
  }
  return count;
}

void walk_geo_matches(types::SortedSetReader& source, const GeoQuery& query,
                      const std::function<bool(const GeoMatch& match)>& each) {
  bool wanted = true;
  for (const types::GeoCell& cell : types::geo_cells(query.shape)) {
    if (!wanted) return;
    source.walk(begin_of(cell), end_of(cell), [&](std::string_view member, double score) {
      const GeoPlace place = types::geo_place(score);
      if (const auto metres = types::geo_distance_within(query.shape, place)) {
        wanted = each({.member = member, .score = score, .distance = *metres / query.unit_m});
      }
      return wanted;
    });
  }
}

}  // namespace ingot::commands

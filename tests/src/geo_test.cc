// Geohashes, distances and the cells of a search.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <set>

#include "src/types/geo_hash.h"
#include "src/types/geo_shape.h"

namespace ingot::types {
namespace {

GeoPlace random_place(std::mt19937_64& random) {
  std::uniform_real_distribution<double> longitude(-kGeoLongitudeMax, kGeoLongitudeMax);
  std::uniform_real_distribution<double> latitude(-kGeoLatitudeMax, kGeoLatitudeMax);
  return {.longitude = longitude(random), .latitude = latitude(random)};
}

TEST_CASE("a place has the score and the letters that are published for it", "[geo]") {
  const GeoPlace palermo{.longitude = 13.361389, .latitude = 38.115556};
  const GeoPlace catania{.longitude = 15.087269, .latitude = 37.502669};
  CHECK(geo_score(palermo) == 3479099956230698);
  CHECK(geo_score(catania) == 3479447370796909);
  CHECK(geo_letters(geo_place(3479099956230698)) == "sqc8b49rny0");
  CHECK(geo_letters(geo_place(3479447370796909)) == "sqdtr74hyu0");
  CHECK(geo_distance(geo_place(3479099956230698), geo_place(3479447370796909)) ==
        Approx(166274.1516).epsilon(1e-9));
}

TEST_CASE("a score gives the place back, to less than a metre", "[geo]") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 10000; ++i) {
    const GeoPlace place = random_place(random);
    CHECK(geo_distance(place, geo_place(static_cast<double>(geo_score(place)))) < 1);
  }
}

TEST_CASE("any score gives a place in the world", "[geo]") {
  for (double score : {-1.0, -1e300, 1e300, 0.5, 4503599627370496.0, 9007199254740992.0,
                       std::numeric_limits<double>::infinity()}) {
    const GeoPlace place = geo_place(score);
    CHECK(std::fabs(place.longitude) <= kGeoLongitudeMax);
    CHECK(std::fabs(place.latitude) <= kGeoLatitudeMax);
  }
}

TEST_CASE("a cell's scores are those of the places in its area", "[geo]") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 5000; ++i) {
    const GeoCell cell = geo_cell(random_place(random), static_cast<unsigned>(random() % 10 + 1));
    const GeoPlace place = random_place(random);
    const GeoArea area = geo_area(cell);
    const GeoScores scores = geo_scores(cell);
    const uint64_t score = geo_score(place);
    const bool inside = place.longitude >= area.min.longitude &&
                        place.longitude < area.max.longitude &&
                        place.latitude >= area.min.latitude && place.latitude < area.max.latitude;
    CHECK((score >= scores.begin && score < scores.end) == inside);
  }
}

TEST_CASE("neighbours go around the world and back", "[geo]") {
  const GeoCell cell = geo_cell({.longitude = 179.99, .latitude = 10}, 8);
  const GeoCell east = geo_neighbour(cell, 1, 0);
  CHECK(geo_area(east).min.longitude == -kGeoLongitudeMax);
  CHECK(geo_neighbour(east, -1, 0) == cell);
  CHECK(geo_neighbour(geo_neighbour(cell, 1, 1), -1, -1) == cell);
}

TEST_CASE("the cells of a search hold whatever lies within it", "[geo]") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 3000; ++i) {
    GeoPlace center = random_place(random);
    center.longitude *= 0.6;  // a search does not go around the world
    center.latitude *= 0.6;
    const double reach = std::pow(10.0, static_cast<double>(random() % 500) / 100 + 1);
    const GeoShape shape{.center = center,
                         .is_box = random() % 2 == 0,
                         .radius_m = reach,
                         .width_m = reach * 2,
                         .height_m = reach};
    const std::vector<GeoCell> cells = geo_cells(shape);
    CHECK(cells.size() <= 9);
    for (int j = 0; j < 20; ++j) {
      const double off = 1.5 * reach / 100'000;
      std::uniform_real_distribution<double> offset(-off, off);
      const GeoPlace place{.longitude = center.longitude + offset(random),
                           .latitude = center.latitude + offset(random)};
      if (std::fabs(place.latitude) >= 60 || std::fabs(place.longitude) >= 170) continue;
      if (!geo_distance_within(shape, place)) continue;
      const uint64_t score = geo_score(place);
      bool covered = false;
      for (const GeoCell& cell : cells) {
        const GeoScores scores = geo_scores(cell);
        covered = covered || (score >= scores.begin && score < scores.end);
      }
      CHECK(covered);
    }
  }
}

}  // namespace
}  // namespace ingot::types

// Places on the earth as 52-bit geohashes, which are the scores of a sorted set that GEO commands
// work on. Pure functions, with the arithmetic of Redis, so that scores and distances are the same.
//
// A geohash cuts longitude and latitude into 2^step parts each and interleaves the numbers of the
// two parts bit by bit, the highest first, a longitude bit before a latitude bit. Places near each
// other share their first bits, so a cell of a lower step is a range of scores.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::types {

struct GeoPlace {
  double longitude = 0;
  double latitude = 0;
};

inline constexpr double kGeoLongitudeMax = 180;
inline constexpr double kGeoLatitudeMax = 85.05112878;  // where the Mercator projection is a square
inline constexpr unsigned kGeoSteps = 26;               // of a score

// A rectangle of places, from its south-western to its north-eastern corner.
struct GeoArea {
  GeoPlace min;
  GeoPlace max;
};

// A part of the world: one of 4^step.
struct GeoCell {
  uint64_t bits = 0;
  unsigned step = 0;

  bool operator==(const GeoCell&) const = default;
};

// The place must lie within the limits above.
GeoCell geo_cell(const GeoPlace& place, unsigned step);
GeoArea geo_area(const GeoCell& cell);
// The cell so many columns to the east and rows to the north, around the world.
GeoCell geo_neighbour(const GeoCell& cell, int east, int north);

// The scores of a cell: [begin, end).
struct GeoScores {
  uint64_t begin;
  uint64_t end;
};
GeoScores geo_scores(const GeoCell& cell);

inline uint64_t geo_score(const GeoPlace& place) {
  return geo_cell(place, kGeoSteps).bits;
}
// The middle of the smallest cell. Any score gives some place.
GeoPlace geo_place(double score);

// The 11 letters of a standard geohash (which has latitudes up to 90).
std::string geo_letters(const GeoPlace& place);

// In metres, along the surface of a sphere.
double geo_distance(const GeoPlace& a, const GeoPlace& b);

}  // namespace ingot::types

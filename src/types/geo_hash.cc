// Interleaving bits into cells and scores and back, neighbours, letters, and distances.
#include "src/types/geo_hash.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "src/types/geo_units.h"

namespace ingot::types {

namespace {

// What is divided into 2^step parts.
struct Span {
  double min;
  double max;
};
constexpr Span kLongitudes{-kGeoLongitudeMax, kGeoLongitudeMax};
constexpr Span kLatitudes{-kGeoLatitudeMax, kGeoLatitudeMax};
constexpr Span kAllLatitudes{-90, 90};

// The bits of `number` with a zero bit before each.
uint64_t spread(uint32_t number) {
  uint64_t bits = number;
  bits = (bits | bits << 16) & 0x0000ffff0000ffff;
  bits = (bits | bits << 8) & 0x00ff00ff00ff00ff;
  bits = (bits | bits << 4) & 0x0f0f0f0f0f0f0f0f;
  bits = (bits | bits << 2) & 0x3333333333333333;
  return (bits | bits << 1) & 0x5555555555555555;
}

// Every second bit, the lowest first: undoes spread().
uint32_t gather(uint64_t bits) {
  bits &= 0x5555555555555555;
  bits = (bits | bits >> 1) & 0x3333333333333333;
  bits = (bits | bits >> 2) & 0x0f0f0f0f0f0f0f0f;
  bits = (bits | bits >> 4) & 0x00ff00ff00ff00ff;
  bits = (bits | bits >> 8) & 0x0000ffff0000ffff;
  return static_cast<uint32_t>(bits | bits >> 16);
}

uint64_t interleave(uint32_t column, uint32_t row) {
  return spread(column) << 1 | spread(row);
}

uint32_t part_of(double value, Span span, unsigned step) {
  const double offset = (value - span.min) / (span.max - span.min);
  return static_cast<uint32_t>(offset * static_cast<double>(uint64_t{1} << step));
}

// Where the part of that number begins. Takes the number behind the last, too.
double beginning(double part, Span span, unsigned step) {
  return span.min + part / static_cast<double>(uint64_t{1} << step) * (span.max - span.min);
}

uint64_t encode(const GeoPlace& place, Span latitudes, unsigned step) {
  return interleave(part_of(place.longitude, kLongitudes, step),
                    part_of(place.latitude, latitudes, step));
}

// Around the world.
uint32_t moved(uint32_t part, int by, unsigned step) {
  return by == 0 ? part : (part + static_cast<uint32_t>(by)) & ((uint32_t{1} << step) - 1);
}

// A score that is no place at all gives what Redis gets from an x86-64.
uint64_t bits_of_score(double score) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(score >= -kLimit)) return uint64_t{1} << 63;
  if (score < kLimit) return static_cast<uint64_t>(static_cast<int64_t>(score));
  return score < 2 * kLimit ? static_cast<uint64_t>(score) : 0;
}

}  // namespace

GeoCell geo_cell(const GeoPlace& place, unsigned step) {
  return {.bits = encode(place, kLatitudes, step), .step = step};
}

GeoArea geo_area(const GeoCell& cell) {
  const double column = gather(cell.bits >> 1);
  const double row = gather(cell.bits);
  return {.min = {.longitude = beginning(column, kLongitudes, cell.step),
                  .latitude = beginning(row, kLatitudes, cell.step)},
          .max = {.longitude = beginning(column + 1, kLongitudes, cell.step),
                  .latitude = beginning(row + 1, kLatitudes, cell.step)}};
}

GeoCell geo_neighbour(const GeoCell& cell, int east, int north) {
  return {.bits = interleave(moved(gather(cell.bits >> 1), east, cell.step),
                             moved(gather(cell.bits), north, cell.step)),
          .step = cell.step};
}

GeoScores geo_scores(const GeoCell& cell) {
  const unsigned unused = 2 * (kGeoSteps - cell.step);
  return {.begin = cell.bits << unused, .end = (cell.bits + 1) << unused};
}

GeoPlace geo_place(double score) {
  const GeoArea area = geo_area({.bits = bits_of_score(score), .step = kGeoSteps});
  auto middle = [](double a, double b, double limit) {
    return std::clamp((a + b) / 2, -limit, limit);
  };
  return {.longitude = middle(area.min.longitude, area.max.longitude, kGeoLongitudeMax),
          .latitude = middle(area.min.latitude, area.max.latitude, kGeoLatitudeMax)};
}

std::string geo_letters(const GeoPlace& place) {
  constexpr std::string_view kAlphabet = "0123456789bcdefghjkmnpqrstuvwxyz";
  constexpr unsigned kLetterBits = 5;
  constexpr unsigned kWholeLetters = 2 * kGeoSteps / kLetterBits;
  const uint64_t bits = encode(place, kAllLatitudes, kGeoSteps);
  std::string letters;
  for (unsigned i = 1; i <= kWholeLetters; ++i) {
    letters += kAlphabet[bits >> (2 * kGeoSteps - i * kLetterBits) & 31];
  }
  // Two bits are left, too few for a letter.
  return letters + kAlphabet[0];
}

double geo_distance(const GeoPlace& a, const GeoPlace& b) {
  const double latitude_a = radians(a.latitude);
  const double latitude_b = radians(b.latitude);
  const double v = std::sin((radians(b.longitude) - radians(a.longitude)) / 2);
  if (v == 0.0) return kEarthRadiusM * std::fabs(latitude_b - latitude_a);
  const double u = std::sin((latitude_b - latitude_a) / 2);
  // The haversine formula.
  const double h = u * u + std::cos(latitude_a) * std::cos(latitude_b) * v * v;
  return 2.0 * kEarthRadiusM * std::asin(std::sqrt(h));
}

}  // namespace ingot::types

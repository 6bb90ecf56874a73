// Distances within a circle or a rectangle, and the nine cells that cover one.
#include "src/types/geo_shape.h"

#include <algorithm>
#include <cmath>

#include "src/types/geo_units.h"

namespace ingot::types {

namespace {

constexpr double kMercatorMaxM = 20037726.37;  // half of the equator

struct Neighbour {
  int east;
  int north;
};
// The order matters: it is that of the results.
constexpr Neighbour kNeighbours[] = {{0, 0}, {0, 1},  {0, -1}, {1, 0},  {-1, 0},
                                     {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};

// From the centre to the farthest point.
double reach_m(const GeoShape& shape) {
  if (!shape.is_box) return shape.radius_m;
  return std::sqrt((shape.width_m / 2) * (shape.width_m / 2) +
                   (shape.height_m / 2) * (shape.height_m / 2));
}

// The finest step at which a cell and its neighbours still cover that much.
unsigned step_for(double reach, double latitude) {
  if (reach == 0) return kGeoSteps;
  int step = 1;
  for (; reach < kMercatorMaxM; reach *= 2) ++step;
  step -= 2;  // one cell alone need not hold the whole shape
  // Cells are narrower near the poles.
  if (std::fabs(latitude) > 66) --step;
  if (std::fabs(latitude) > 80) --step;
  return static_cast<unsigned>(std::clamp(step, 1, static_cast<int>(kGeoSteps)));
}

GeoArea bounding_box(const GeoShape& shape) {
  const double half_height = shape.is_box ? shape.height_m / 2 : shape.radius_m;
  const double half_width = shape.is_box ? shape.width_m / 2 : shape.radius_m;
  const GeoPlace& at = shape.center;
  const double north = degrees(half_height / kEarthRadiusM);
  // A degree of longitude is shortest on the side of the pole.
  const double polar_latitude = at.latitude < 0 ? at.latitude - north : at.latitude + north;
  const double east = degrees(half_width / kEarthRadiusM / std::cos(radians(polar_latitude)));
  return {.min = {.longitude = at.longitude - east, .latitude = at.latitude - north},
          .max = {.longitude = at.longitude + east, .latitude = at.latitude + north}};
}

// Whether a neighbour of the cell ends before the box does on its side.
bool neighbours_fall_short(const GeoCell& cell, const GeoArea& box) {
  return geo_area(geo_neighbour(cell, 0, 1)).max.latitude < box.max.latitude ||
         geo_area(geo_neighbour(cell, 0, -1)).min.latitude > box.min.latitude ||
         geo_area(geo_neighbour(cell, 1, 0)).max.longitude < box.max.longitude ||
         geo_area(geo_neighbour(cell, -1, 0)).min.longitude > box.min.longitude;
}

// Whether the neighbour lies on a side on which the cell alone holds the box.
bool is_useless(const Neighbour& to, const GeoArea& area, const GeoArea& box) {
  return (to.north < 0 && area.min.latitude < box.min.latitude) ||
         (to.north > 0 && area.max.latitude > box.max.latitude) ||
         (to.east < 0 && area.min.longitude < box.min.longitude) ||
         (to.east > 0 && area.max.longitude > box.max.longitude);
}

}  // namespace

std::optional<double> geo_distance_within(const GeoShape& shape, const GeoPlace& place) {
  if (!shape.is_box) {
    // Farther to the north or south alone: spares the rest. (The factor is for what is rounded.)
    const double north = kEarthRadiusM * radians(place.latitude - shape.center.latitude);
    if (std::fabs(north) > shape.radius_m * 1.000001 + 1) return std::nullopt;
    const double distance = geo_distance(shape.center, place);
    return distance > shape.radius_m ? std::nullopt : std::optional(distance);
  }
  const GeoPlace beside{.longitude = shape.center.longitude, .latitude = place.latitude};
  if (geo_distance(place, beside) > shape.width_m / 2) return std::nullopt;
  const GeoPlace below{.longitude = place.longitude, .latitude = shape.center.latitude};
  if (geo_distance(place, below) > shape.height_m / 2) return std::nullopt;
  return geo_distance(shape.center, place);
}

std::vector<GeoCell> geo_cells(const GeoShape& shape) {
  const GeoArea box = bounding_box(shape);
  unsigned step = step_for(reach_m(shape), shape.center.latitude);
  GeoCell center = geo_cell(shape.center, step);
  if (step > 1 && neighbours_fall_short(center, box)) center = geo_cell(shape.center, --step);
  const GeoArea area = geo_area(center);
  std::vector<GeoCell> cells;
  for (const Neighbour& to : kNeighbours) {
    if (step >= 2 && is_useless(to, area, box)) continue;
    const GeoCell cell = geo_neighbour(center, to.east, to.north);
    // In a coarse grid two directions lead to the same cell.
    if (cells.empty() || cells.back() != cell) cells.push_back(cell);
  }
  return cells;
}

}  // namespace ingot::types

// Which places lie within a circle or a rectangle, and in which cells to look for them. Pure
// functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/types/geo_hash.h"

namespace ingot::types {

// Around a place; metres.
struct GeoShape {
  GeoPlace center;
  bool is_box = false;
  double radius_m = 0;  // of a circle
  double width_m = 0;   // of a box
  double height_m = 0;
};

// How far the place is from the shape's centre, if it lies within the shape; metres.
std::optional<double> geo_distance_within(const GeoShape& shape, const GeoPlace& place);

// The cells that cover the shape, at most nine, in the order in which Redis looks at them.
std::vector<GeoCell> geo_cells(const GeoShape& shape);

}  // namespace ingot::types

// Angles and the earth, with the numbers of Redis.
#pragma once

#include <numbers>

namespace ingot::types {

inline constexpr double kEarthRadiusM = 6372797.560856;
inline constexpr double kRadiansPerDegree = std::numbers::pi / 180.0;

inline double radians(double degrees) {
  return degrees * kRadiansPerDegree;
}
inline double degrees(double radians) {
  return radians / kRadiansPerDegree;
}

}  // namespace ingot::types

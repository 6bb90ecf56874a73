// How many reads a second the disk under a directory gives to so many threads: what `reader-threads
// auto` goes by.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

namespace ingot::storage {

struct DeviceRate {
  int threads = 0;
  double reads_per_second = 0;
};

// Reads 4 KB at random places for some two seconds, past the page cache: of the large files in
// `directory`, or of a file of its own where they are few, which needs 64 MB for that while. Any
// thread; `stop` ends it early. Empty when it was stopped, or the disk cannot be read like that.
std::vector<DeviceRate> measure_device(const std::string& directory, const std::atomic<bool>& stop);

// The fewest threads of the curve, which is not empty, that get nearly as much as any number does.
int knee(std::span<const DeviceRate> curve);

}  // namespace ingot::storage

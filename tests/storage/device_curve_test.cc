// What a disk gives to how many threads, and which number that tells to take.
#include "storage/device_curve.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "tests/storage/temporary_directory.h"

namespace ingot::storage {
namespace {

TEST_CASE("the knee is where more threads get next to nothing", "[device_curve]") {
  const std::vector<DeviceRate> hard_disk = {{1, 146}, {2, 150}, {4, 150}, {8, 149}};
  CHECK(knee(hard_disk) == 1);
  const std::vector<DeviceRate> ssd = {
      {1, 7500}, {8, 35'000}, {16, 39'000}, {32, 43'000}, {64, 36'000}};
  CHECK(knee(ssd) == 16);
  const std::vector<DeviceRate> rising = {{1, 10}, {2, 20}, {4, 40}};
  CHECK(knee(rising) == 4);
}

TEST_CASE("a disk is measured with a file of its own, which is gone afterwards", "[device_curve]") {
  TemporaryDirectory directory;
  const std::string path = directory.file("");
  std::atomic<bool> stop = false;
  const auto curve = measure_device(path, stop);
  REQUIRE_FALSE(curve.empty());
  CHECK(curve.front().threads == 1);
  for (const DeviceRate& each : curve) CHECK(each.reads_per_second > 0);
  CHECK(std::filesystem::is_empty(path));
  CHECK(measure_device(directory.file("missing"), stop).empty());

  std::thread stopper([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop = true;
  });
  CHECK(measure_device(path, stop).empty());
  stopper.join();
  CHECK(std::filesystem::is_empty(path));
}

}  // namespace
}  // namespace ingot::storage

// Timing random reads of a directory's disk.
#include "storage/device_curve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <thread>

namespace ingot::storage {
namespace {

constexpr uint64_t kReadBytes = 4096;
constexpr uint64_t kScratchBytes = 64 << 20;
constexpr uint64_t kFileBytesMin = 1 << 20;
constexpr std::chrono::milliseconds kStep{250};
constexpr double kNearly = 0.9;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct File {
  Descriptor descriptor;
  uint64_t blocks;
};

// Without the page cache if that can be had.
Descriptor open_to_read(const std::string& path) {
  const int direct = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  return Descriptor(direct >= 0 ? direct : open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

void add(const std::string& path, std::vector<File>* files, uint64_t* bytes) {
  Descriptor descriptor = open_to_read(path);
  struct stat status {};
  if (descriptor.get() < 0 || fstat(descriptor.get(), &status) != 0) return;
  const auto size = static_cast<uint64_t>(status.st_size);
  posix_fadvise(descriptor.get(), 0, 0, POSIX_FADV_DONTNEED);
  files->push_back({std::move(descriptor), size / kReadBytes});
  *bytes += size;
}

std::vector<File> large_files(const std::string& directory) {
  std::vector<File> files;
  uint64_t bytes = 0;
  std::error_code error;
  constexpr size_t kFilesMax = 64;
  for (std::filesystem::directory_iterator it(directory, error), end;
       !error && it != end && files.size() < kFilesMax; it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone) || it->path().extension() == ".log") continue;
    if (const auto size = it->file_size(gone); gone || size < kFileBytesMin) continue;
    add(it->path(), &files, &bytes);
  }
  if (bytes < kScratchBytes) files.clear();
  return files;
}

// Its name is gone at once: a crash leaves an empty file at most, which no engine looks at.
std::vector<File> scratch_file(const std::string& directory, const std::atomic<bool>& stop) {
  std::vector<File> files;
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  if (error || space.available < 16 * kScratchBytes) return files;
  std::string path = directory + "/device-curve-XXXXXX";
  const Descriptor written(mkstemp(path.data()));
  if (written.get() < 0) return files;
  uint64_t bytes = 0;
  add(path, &files, &bytes);
  unlink(path.c_str());
  std::mt19937_64 random;
  std::vector<uint64_t> piece((1 << 20) / sizeof(uint64_t));
  std::ranges::generate(piece, std::ref(random));  // a disk may leave zeros out
  const size_t piece_bytes = piece.size() * sizeof(uint64_t);
  for (bytes = 0; bytes < kScratchBytes && !stop; bytes += piece_bytes) {
    if (write(written.get(), piece.data(), piece_bytes) != static_cast<ssize_t>(piece_bytes) ||
        fdatasync(written.get()) != 0) {
      return {};
    }
  }
  if (stop || files.empty()) return {};
  posix_fadvise(written.get(), 0, 0, POSIX_FADV_DONTNEED);
  files.front().blocks = bytes / kReadBytes;
  return files;
}

// Reads until `stop`; how often, or nothing when a read failed.
void read_blocks(const std::vector<File>& files, uint64_t seed, const std::atomic<bool>& stop,
                 std::atomic<uint64_t>* reads, std::atomic<bool>* failed) {
  std::mt19937_64 random(seed);
  const std::unique_ptr<void, decltype(&std::free)> buffer(aligned_alloc(kReadBytes, kReadBytes),
                                                           &std::free);
  while (!stop && !*failed) {
    const File& file = files[random() % files.size()];
    const uint64_t at = random() % file.blocks * kReadBytes;
    if (pread(file.descriptor.get(), buffer.get(), kReadBytes, static_cast<off_t>(at)) < 0) {
      *failed = true;
    }
    ++*reads;
  }
}

}  // namespace

std::vector<DeviceRate> measure_device(const std::string& directory,
                                       const std::atomic<bool>& stop) {
  std::vector<File> files = large_files(directory);
  if (files.empty()) files = scratch_file(directory, stop);
  if (files.empty()) return {};
  std::vector<DeviceRate> curve;
  uint64_t seed = 0;
  for (const int threads : {1, 2, 4, 8, 16, 32, 64}) {
    std::atomic<uint64_t> reads = 0;
    std::atomic<bool> failed = false;
    std::atomic<bool> over = false;
    const auto begun = std::chrono::steady_clock::now();
    std::vector<std::thread> readers;
    try {
      for (int i = 0; i < threads; ++i) {
        readers.emplace_back(
            [&, mine = ++seed] { read_blocks(files, mine, over, &reads, &failed); });
      }
    } catch (const std::system_error&) {  // as many as there may be
    }
    while (!stop && std::chrono::steady_clock::now() - begun < kStep) {
      std::this_thread::sleep_for(kStep / 10);
    }
    over = true;
    for (std::thread& reader : readers) reader.join();
    if (stop || failed) return {};
    if (readers.size() < static_cast<size_t>(threads)) break;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    curve.push_back({threads, static_cast<double>(reads) / took.count()});
  }
  return curve;
}

int knee(std::span<const DeviceRate> curve) {
  const auto best = std::ranges::max(curve, {}, &DeviceRate::reads_per_second);
  return std::ranges::find_if(curve,
                              [&](const DeviceRate& each) {
                                return each.reads_per_second >= kNearly * best.reads_per_second;
                              })
      ->threads;
}

}  // namespace ingot::storage

// Tables that no version of LevelDB has any more, and that it has not removed: a read kept them
// when the compaction that took their place ended. LevelDB looks for such behind the next one only,
// which on a full disk waits for their very space.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace leveldb {
class DB;
}  // namespace leveldb

namespace ingot::storage {

class LeveldbEnv;

// Tells when all reads have ended that were on at some moment.
class ReadEpochs {
 public:
  // Any thread; may move to another. Lives as long as LevelDB may keep tables for the read.
  class Read {
   public:
    explicit Read(ReadEpochs* epochs);
    ~Read() { --*reads_; }
    Read(const Read&) = delete;
    Read& operator=(const Read&) = delete;

   private:
    std::atomic<int64_t>* reads_;
  };

  // One thread calls these. Whether all reads have ended that began before the last next().
  bool only_new() const { return reads_[(epoch_ + 1) % 2] == 0; }
  void next() { ++epoch_; }  // only_new() must hold

 private:
  std::atomic<uint64_t> epoch_ = 0;
  std::array<std::atomic<int64_t>, 2> reads_ = {};  // that are on, by the epoch that they began in
};

class LeveldbGarbage {
 public:
  // All are to outlive this. Each read of `db` has its Read.
  LeveldbGarbage(const LeveldbEnv* env, ReadEpochs* epochs, std::filesystem::path directory)
      : env_(env), epochs_(epochs), directory_(std::move(directory)) {}

  // To be asked some times a second, by one thread: whether to call one of the others, which do not
  // wait for anything.
  bool is_due() const;
  // Space is short: finds them, or removes what it found when nothing reads those any more. `db`
  // must not have failed.
  void remove_some(leveldb::DB* db);
  void space_is_there();

 private:
  std::vector<std::filesystem::path> find(leveldb::DB* db) const;

  const LeveldbEnv* const env_;
  ReadEpochs* const epochs_;
  const std::filesystem::path directory_;
  std::vector<std::filesystem::path> found_;
  std::chrono::steady_clock::time_point looked_at_;
};

}  // namespace ingot::storage

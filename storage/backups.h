// A directory of backups, each of which is whole by itself but shares with the others the files
// that they have in common, by RocksDB's backup engine. Of data of RocksDB alone.
//
// One thread. Several processes may read one directory; who changes it has it for himself. Whatever
// a change leaves undone when its process is killed or the disk is full, the next change removes;
// the other backups stay as they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/status.h"

namespace ingot::storage {

class Backups {
 public:
  struct Backup {
    uint32_t id = 0;     // ascending; never used again while a later one is there
    int64_t made_s = 0;  // Unix
    uint64_t bytes = 0;  // of its files, shared ones included
    uint32_t files = 0;
  };
  enum class Access : uint8_t {
    kRead,
    kChange,  // creates the directory when it is absent or empty
  };
  using OpenResult = std::pair<std::unique_ptr<Backups>, Status>;

  // kBusy: another process is at work there, and was for two seconds. kInvalid: it is no such
  // directory.
  static OpenResult open(const std::string& directory, Access access);

  virtual ~Backups() = default;

  // The oldest first.
  virtual std::vector<Backup> list() const = 0;
  // Of which files are missing, or have another size.
  virtual std::vector<uint32_t> damaged() const = 0;

  // Adds what stands in the directory `data`, which nobody may write to (a checkpoint). Its
  // directory may be moved away meanwhile; kBusy: it was removed or replaced, and nothing was
  // added.
  virtual Status create(const std::string& data, Backup* made) = 0;

  // Reads all of it twice: the checksums of the files, then those in them. kCorruption: it is not
  // what was written.
  virtual Status verify(uint32_t id) const = 0;

  // Writes it, durably, to the new directory `target`, which open_engine() takes. What an error
  // leaves there is of no use.
  virtual Status restore(uint32_t id, const std::string& target) const = 0;

  // Removes all but the last `keep`.
  virtual Status purge(uint32_t keep) = 0;
};

}  // namespace ingot::storage

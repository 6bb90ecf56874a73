// What the two engines write alike but not the same: the batches in their logs, and the edits in
// their manifests, which tell the tables and logs that count. Pure but for the file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/status.h"

namespace ingot::storage {

enum class FileForm : uint8_t { kRocksdb, kLeveldb };

// A key behind which its version stands, as in tables and manifests: u64le sequence << 8 | kind.
struct VersionedKey {
  std::string_view key;
  uint64_t sequence = 0;
  uint8_t kind = 0;  // 0: removed, 1: put
};
[[nodiscard]] bool decode_versioned(std::string_view bytes, VersionedKey* out);
inline constexpr uint8_t kRemovedKind = 0;
inline constexpr uint8_t kPutKind = 1;

// One change of a batch. RocksDB names the column family by a number; LevelDB's is 0.
struct LoggedChange {
  uint32_t family = 0;
  uint64_t sequence = 0;
  bool removed = false;
  std::string_view key, value;
};
struct LoggedBatch {
  uint64_t first_sequence = 0;
  uint64_t end_sequence = 0;  // of the next batch
};
// False, after some of the changes perhaps, when the record is no batch.
[[nodiscard]] bool read_batch(std::string_view record, LoggedBatch* batch,
                              const std::function<void(const LoggedChange&)>& each);

struct ListedTable {
  uint32_t family = 0;
  std::string smallest, largest;  // keys without their versions
  uint64_t newest = UINT64_MAX;   // no record of it has a greater sequence
};
// What a manifest says at its end.
struct Catalogue {
  std::map<uint64_t, ListedTable> tables;    // by number
  std::map<uint32_t, std::string> families;  // RocksDB's column families by number
  uint64_t first_log = 0;                    // those before it are in tables
  uint64_t next_file = 0;                    // no number from here on had been given out
  uint64_t damaged_bytes = 0;  // what was written there is not known, and so not all of the above
  bool empty = true;
};
Status read_manifest(const std::string& path, FileForm form, Catalogue* out);

}  // namespace ingot::storage

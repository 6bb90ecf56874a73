// The blocks of table files, which both engines draw alike, and how their checksums are verified:
//
//   block     entries | hash index (RocksDB's meta space) | u32le offset of each restart point
//             | u32le restart points
//   behind it compression (1) | checksum (4)
//   entry     bytes of the key shared with the entry before | other bytes of it | bytes of the
//   value
//             (varints) | those of the key | those of the value
//
// Pure but for the file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "storage/salvage/damaged_file.h"
#include "storage/salvage/engine_files.h"

namespace ingot::storage {

inline constexpr uint64_t kBlockTrailerBytes = 5;

// Where a block stands; its trailer not counted.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t end() const { return offset + bytes + kBlockTrailerBytes; }
};

// The contents of a block, decompressed; nothing when it is damaged.
std::optional<std::string> read_block(const DamagedFile& file, FileForm form, BlockHandle handle);

// Calls `each` for the entries until it returns false. False when the block is no block.
using EachEntry = std::function<bool(std::string_view key, std::string_view value)>;
[[nodiscard]] bool walk_block(std::string_view block, const EachEntry& each);

// The same of an index: the last key of a block, or what stands behind it and before the next, and
// where the block is. RocksDB notes no length of the values, and of an entry that shares a key only
// by how much the block is longer than the one before it.
using EachHandle = std::function<bool(std::string_view key, BlockHandle handle)>;
[[nodiscard]] bool walk_index(std::string_view block, FileForm form, const EachHandle& each);

// The block that begins there, found by its checksum alone; nothing when there is none.
std::optional<BlockHandle> find_block(const DamagedFile& file, FileForm form, uint64_t offset);

}  // namespace ingot::storage

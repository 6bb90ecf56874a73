// Finding the blocks of a table, and walking them.
//
//   RocksDB   data blocks | filter | index: blocks of handles, then one of the handles of those
//             | properties | names of these | footer (53): checksum (1) | handle of the names
//             | handle of the index | zeros up to byte 41 | u32le version | magic (8)
//   LevelDB   data blocks | filter | names | index | footer (48): handle of the names | handle of
//             the index | zeros up to byte 40 | magic (8)
#include "storage/salvage/salvaged_table.h"

#include <algorithm>
#include <utility>

#include "storage/salvage/byte_taker.h"
#include "storage/spaces.h"

namespace ingot::storage {
namespace {

constexpr uint64_t kRocksdbFooterBytes = 53;
constexpr uint64_t kLeveldbFooterBytes = 48;
constexpr uint64_t kRocksdbMagic = 0x88e241b785f4cff7;
constexpr uint64_t kLeveldbMagic = 0xdb4775248b80fb57;
constexpr size_t kVersionBytes = 8;
// Behind the properties stand their names, before them nothing that is like them.
constexpr size_t kBlocksBehindProperties = 4;

std::optional<BlockHandle> handle_in(std::string_view bytes) {
  ByteTaker in(bytes);
  const uint64_t offset = in.varint();
  const uint64_t size = in.varint();
  if (in.failed()) return std::nullopt;
  return BlockHandle{.offset = offset, .bytes = size};
}

}  // namespace

SalvagedTable::SalvagedTable(const std::string& path, FileForm form)
    : form_(form), file_(path), index_has_versions_(form == FileForm::kLeveldb) {
  if (!file_.status().ok()) return;
  read_footer();
  if (!is_indexed_) is_complete_ = search_blocks();
}

void SalvagedTable::read_footer() {
  const bool rocksdb = form_ == FileForm::kRocksdb;
  const uint64_t size = rocksdb ? kRocksdbFooterBytes : kLeveldbFooterBytes;
  if (file_.size() < size) return;
  std::string footer;
  file_.read(file_.size() - size, size, &footer);
  const std::string_view bytes = footer;
  if (read_le64(bytes.substr(size - 8)) != (rocksdb ? kRocksdbMagic : kLeveldbMagic)) return;
  ByteTaker in(bytes.substr(rocksdb ? 1 : 0));
  const BlockHandle names = {.offset = in.varint(), .bytes = in.varint()};
  const BlockHandle index = {.offset = in.varint(), .bytes = in.varint()};
  if (in.failed()) return;
  if (rocksdb) {
    std::optional<BlockHandle> properties;
    if (const auto block = read_block(file_, form_, names)) {
      (void)walk_block(*block, [&](std::string_view name, std::string_view value) {
        if (name == "rocksdb.properties") properties = handle_in(value);
        return true;
      });
    }
    if (properties) {
      if (const auto block = read_block(file_, form_, *properties)) read_properties(*block);
    }
  }
  is_indexed_ = is_complete_ = read_index(index, rocksdb);
  if (!is_indexed_) blocks_.clear();
}

bool SalvagedTable::read_index(BlockHandle index, bool is_two_level) {
  const auto block = read_block(file_, form_, index);
  if (!block) return false;
  bool readable = true;
  return walk_index(*block, form_,
                    [&](std::string_view key, BlockHandle handle) {
                      if (is_two_level) return readable = read_index(handle, false);
                      if (index_has_versions_ && key.size() >= kVersionBytes) {
                        key.remove_suffix(kVersionBytes);
                      }
                      blocks_.push_back({.last = std::string(key), .handle = handle});
                      return true;
                    }) &&
         readable;
}

void SalvagedTable::read_properties(std::string_view block) {
  (void)walk_block(block, [&](std::string_view name, std::string_view value) {
    if (name == "rocksdb.column.family.name") family_ = value;
    if (name == "rocksdb.data.size") data_bytes_ = ByteTaker(value).varint();
    if (name == "rocksdb.index.key.is.user.key") {
      index_has_versions_ = ByteTaker(value).varint() == 0;
    }
    return true;
  });
}

bool SalvagedTable::search_blocks() {
  while (const auto found = find_block(file_, form_, searched_until_)) {
    if (form_ == FileForm::kLeveldb) {
      const auto block = read_block(file_, form_, *found);
      if (!block || !is_data(*block)) return true;
    }
    blocks_.push_back({.last = {}, .handle = *found});
    searched_until_ = found->end();
    if (data_bytes_ != 0 && searched_until_ >= data_bytes_) return true;
  }
  if (form_ == FileForm::kLeveldb) return false;
  const size_t last = std::min(kBlocksBehindProperties, blocks_.size());
  for (size_t i = 1; data_bytes_ == 0 && i <= last; ++i) {
    const BlockHandle handle = blocks_[blocks_.size() - i].handle;
    if (const auto block = read_block(file_, form_, handle)) read_properties(*block);
  }
  // Without properties nothing tells data from what stands behind it.
  std::erase_if(blocks_, [&](const Block& block) { return block.handle.end() > data_bytes_; });
  searched_until_ = blocks_.empty() ? 0 : blocks_.back().handle.end();
  return data_bytes_ != 0 && searched_until_ == data_bytes_;
}

// A block of LevelDB's that is no filter, nor any other that stands behind the data.
bool SalvagedTable::is_data(std::string_view block) const {
  bool data = false;
  const bool readable = walk_block(block, [&](std::string_view bytes, std::string_view value) {
    VersionedKey key;
    data = decode_versioned(bytes, &key) && !key.key.empty() &&
           static_cast<uint8_t>(key.key[0]) < kSpaceCount && key.kind <= kPutKind &&
           value.empty() == (key.kind == kRemovedKind);
    return data;
  });
  return readable && data;
}

void SalvagedTable::walk(const TableEvents& events) {
  if (!is_indexed_ && is_complete_) events.harmless("its index is damaged");
  std::string after;
  std::optional<std::pair<uint64_t, uint64_t>> bad;
  std::string bad_last;
  const auto tell_bad = [&] {
    if (!bad) return;
    events.damage(bad->first, bad->second, after,
                  bad_last.empty() ? std::nullopt : std::optional(bad_last));
    bad.reset();
  };
  for (const Block& block : blocks_) {
    const auto bytes = read_block(file_, form_, block.handle);
    std::string last;
    const bool readable =
        bytes && walk_block(*bytes, [&](std::string_view entry, std::string_view value) {
          VersionedKey key;
          if (!decode_versioned(entry, &key) || key.kind > kPutKind) return true;
          tell_bad();
          events.record(key, value);
          last = key.key;
          return true;
        });
    if (!last.empty()) after = std::move(last);
    if (readable) continue;
    if (!bad) bad.emplace(block.handle.offset, block.handle.end());
    bad->second = block.handle.end();
    bad_last = block.last;
  }
  tell_bad();
  if (is_complete_) return;
  events.damage(searched_until_, data_bytes_ != 0 ? data_bytes_ : file_.size(), after,
                std::nullopt);
}

}  // namespace ingot::storage

// Verifying, decompressing and walking blocks.
#include "storage/salvage/table_blocks.h"

#include <lz4.h>
#include <snappy.h>
#include <zstd.h>

#include <algorithm>
#include <climits>

#include "storage/salvage/byte_taker.h"
#include "storage/salvage/checksum.h"

namespace ingot::storage {
namespace {

constexpr uint64_t kWindowBytes = 64 << 10;
constexpr uint32_t kHashIndexBit = 1u << 31;  // of the number of restart points

enum Compression : uint8_t { kNone = 0, kSnappy = 1, kLz4 = 4, kZstd = 7 };

bool is_compression(char byte, FileForm form) {
  const auto kind = static_cast<uint8_t>(byte);
  return kind == kNone || kind == kSnappy ||
         (form == FileForm::kRocksdb && (kind == kLz4 || kind == kZstd));
}

// Of a block and its kind of compression.
uint32_t block_checksum(FileForm form, std::string_view bytes) {
  if (form == FileForm::kLeveldb) return masked_crc(bytes);
  BlockXxh3 hash;
  hash.add(bytes.substr(0, bytes.size() - 1));
  return hash.value(bytes.back());
}

// Before LZ4's and zstd's bytes stands how many they will be.
std::optional<std::string> decompress(uint8_t kind, std::string_view bytes) {
  std::string out;
  if (kind == kNone) return std::string(bytes);
  if (kind == kSnappy) {
    if (!snappy::Uncompress(bytes.data(), bytes.size(), &out)) return std::nullopt;
    return out;
  }
  ByteTaker in(bytes);
  const uint64_t size = in.varint();
  const std::string_view rest = in.rest();
  if (in.failed() || size > INT_MAX || rest.size() > INT_MAX) return std::nullopt;
  out.resize(size);
  const bool done =
      kind == kLz4 ? LZ4_decompress_safe(rest.data(), out.data(), static_cast<int>(rest.size()),
                                         static_cast<int>(size)) == static_cast<int>(size)
                   : ZSTD_decompress(out.data(), size, rest.data(), rest.size()) == size;
  return done ? std::optional(std::move(out)) : std::nullopt;
}

// What stands before the restart points; nothing when there cannot be so many.
std::optional<std::string_view> entries_of(std::string_view block) {
  if (block.size() < 4) return std::nullopt;
  uint32_t restarts = read_le32(block.substr(block.size() - 4));
  block.remove_suffix(4);
  if ((restarts & kHashIndexBit) != 0) {
    restarts &= ~kHashIndexBit;
    if (block.size() < 2) return std::nullopt;
    const size_t buckets = static_cast<uint8_t>(block[block.size() - 2]) |
                           static_cast<size_t>(static_cast<uint8_t>(block.back())) << 8;
    if (block.size() < 2 + buckets) return std::nullopt;
    block.remove_suffix(2 + buckets);
  }
  if (block.size() / 4 < restarts) return std::nullopt;
  block.remove_suffix(size_t{restarts} * 4);
  return block;
}

BlockHandle take_handle(ByteTaker& in) {
  const uint64_t offset = in.varint();
  return {.offset = offset, .bytes = in.varint()};
}

}  // namespace

std::optional<std::string> read_block(const DamagedFile& file, FileForm form, BlockHandle handle) {
  if (handle.bytes > file.size() || handle.offset > file.size() || handle.end() > file.size()) {
    return std::nullopt;
  }
  std::string bytes;
  file.read(handle.offset, handle.bytes + kBlockTrailerBytes, &bytes);
  const std::string_view all = bytes;
  const char kind = all[handle.bytes];
  if (!is_compression(kind, form) || read_le32(all.substr(handle.bytes + 1)) !=
                                         block_checksum(form, all.substr(0, handle.bytes + 1))) {
    return std::nullopt;
  }
  return decompress(static_cast<uint8_t>(kind), all.substr(0, handle.bytes));
}

bool walk_block(std::string_view block, const EachEntry& each) {
  const auto entries = entries_of(block);
  if (!entries) return false;
  std::string key;
  for (ByteTaker in(*entries); !in.empty();) {
    const uint64_t shared = in.varint();
    const uint64_t other = in.varint();
    const uint64_t bytes = in.varint();
    const std::string_view tail = in.take(other);
    const std::string_view value = in.take(bytes);
    if (in.failed() || shared > key.size()) return false;
    key.resize(shared);
    key.append(tail);
    if (!each(key, value)) return true;
  }
  return true;
}

bool walk_index(std::string_view block, FileForm form, const EachHandle& each) {
  if (form == FileForm::kLeveldb) {
    bool readable = true;
    return walk_block(block,
                      [&](std::string_view key, std::string_view value) {
                        ByteTaker in(value);
                        const BlockHandle handle = take_handle(in);
                        readable = !in.failed();
                        return readable && each(key, handle);
                      }) &&
           readable;
  }
  const auto entries = entries_of(block);
  if (!entries) return false;
  std::string key;
  BlockHandle handle;
  for (ByteTaker in(*entries); !in.empty();) {
    const uint64_t shared = in.varint();
    const uint64_t other = in.varint();
    const std::string_view tail = in.take(other);
    if (in.failed() || shared > key.size()) return false;
    key.resize(shared);
    key.append(tail);
    if (shared == 0) {
      handle = take_handle(in);
    } else {
      const uint64_t more = in.varint();  // the lowest bit is the sign
      handle = {.offset = handle.end(), .bytes = handle.bytes + ((more >> 1) ^ (0 - (more & 1)))};
    }
    if (in.failed()) return false;
    if (!each(key, handle)) return true;
  }
  return true;
}

std::optional<BlockHandle> find_block(const DamagedFile& file, FileForm form, uint64_t offset) {
  MaskedCrc crc;
  BlockXxh3 hash;
  std::string window;
  std::string next;
  for (uint64_t at = offset; at + kBlockTrailerBytes <= file.size(); at += kWindowBytes) {
    // With the trailer of a block that ends in this window.
    file.read(at, kWindowBytes + kBlockTrailerBytes, &window);
    const size_t ends = window.size() - (kBlockTrailerBytes - 1);
    size_t added = 0;
    for (size_t i = 0; i < std::min<size_t>(ends, kWindowBytes); ++i) {
      // Would the block end before this byte, which told its compression?
      if (!is_compression(window[i], form)) continue;
      const std::string_view more = std::string_view(window).substr(added, i - added);
      uint32_t sum = 0;
      if (form == FileForm::kRocksdb) {
        hash.add(more);
        sum = hash.value(window[i]);
      } else {
        crc.add(more);
        MaskedCrc with_kind = crc;
        with_kind.add({&window[i], 1});
        sum = with_kind.value();
      }
      added = i;
      if (sum == read_le32(std::string_view(window).substr(i + 1))) {
        return BlockHandle{.offset = offset, .bytes = at + i - offset};
      }
    }
    const auto rest = std::string_view(window).substr(0, std::min<size_t>(ends, kWindowBytes));
    hash.add(rest.substr(added));
    crc.add(rest.substr(added));
  }
  return std::nullopt;
}

}  // namespace ingot::storage

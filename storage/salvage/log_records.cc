// Walking a log's fragments, block by block, and joining them to records.
#include "storage/salvage/log_records.h"

#include <algorithm>

#include "storage/codec.h"
#include "storage/salvage/checksum.h"
#include "storage/salvage/damaged_file.h"

namespace ingot::storage {
namespace {

constexpr size_t kBlockBytes = 32 << 10;
constexpr size_t kHeaderBytes = 7;
enum Type : uint8_t { kWhole = 1, kFirst, kMiddle, kLast };

bool all_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

class LogWalk {
 public:
  explicit LogWalk(const LogEvents& events) : events_(events) {}

  void walk(const DamagedFile& file) {
    std::string block;
    for (uint64_t begin = 0; begin < file.size(); begin += kBlockBytes) {
      file.read(begin, kBlockBytes, &block);
      walk_block(begin, block);
    }
    if (joining_) {
      unfinished_from_ = joined_from_;
      bad(joined_from_, file.size());
    }
    if (bad_from_ < bad_until_) {
      events_.damage(bad_from_, bad_until_, bad_from_ == unfinished_from_);
    }
  }

 private:
  void walk_block(uint64_t begin, std::string_view block) {
    size_t at = 0;
    while (at < block.size()) {
      const std::string_view rest = block.substr(at);
      // The end of a block, or room that was taken in advance.
      if (kBlockBytes - at < kHeaderBytes || all_zero(rest)) return;
      if (const size_t size = fragment(rest); size > 0) {
        take(begin + at, static_cast<uint8_t>(rest[6]),
             rest.substr(kHeaderBytes, size - kHeaderBytes));
        at += size;
        continue;
      }
      if (is_unfinished(block, rest)) unfinished_from_ = joining_ ? joined_from_ : begin + at;
      size_t next = at + 1;
      while (next < block.size() && !is_row(block, next)) ++next;
      bad(begin + at, begin + next);
      at = next;
    }
  }

  // The size of the sound fragment at the front of these bytes; 0 when there is none.
  static size_t fragment(std::string_view rest) {
    if (rest.size() < kHeaderBytes) return 0;
    const size_t length = static_cast<uint8_t>(rest[4]) | static_cast<uint8_t>(rest[5]) << 8;
    const auto type = static_cast<uint8_t>(rest[6]);
    if (type < kWhole || type > kLast || length > rest.size() - kHeaderBytes) return 0;
    return read_le32(rest) == masked_crc(rest.substr(6, length + 1)) ? kHeaderBytes + length : 0;
  }
  // Sound fragments from here to the end of the block. One alone may be the bytes of a value, into
  // which somebody has put a log.
  static bool is_row(std::string_view block, size_t at) {
    if (fragment(block.substr(at)) == 0) return false;
    while (const size_t size = fragment(block.substr(at))) at += size;
    return kBlockBytes - at < kHeaderBytes || all_zero(block.substr(at)) ||
           is_unfinished(block, block.substr(at));
  }
  // The front of a fragment that is longer than the file: a write that was cut off.
  static bool is_unfinished(std::string_view block, std::string_view rest) {
    if (block.size() == kBlockBytes) return false;
    if (rest.size() < kHeaderBytes) return true;
    const size_t length = static_cast<uint8_t>(rest[4]) | static_cast<uint8_t>(rest[5]) << 8;
    const auto type = static_cast<uint8_t>(rest[6]);
    return type >= kWhole && type <= kLast && length > rest.size() - kHeaderBytes;
  }

  void take(uint64_t at, uint8_t type, std::string_view bytes) {
    const bool begins = type == kWhole || type == kFirst;
    if (begins && joining_) bad(joined_from_, at);
    if (begins) {
      joined_.clear();
      joined_from_ = at;
      joining_ = true;
    } else if (!joining_) {
      return bad(at, at + kHeaderBytes + bytes.size());  // its beginning is lost
    }
    joined_.append(bytes);
    if (type != kWhole && type != kLast) return;
    joining_ = false;
    if (bad_from_ < bad_until_) events_.damage(bad_from_, bad_until_, false);
    bad_from_ = bad_until_ = 0;
    events_.record(joined_);
  }

  void bad(uint64_t begin, uint64_t end) {
    if (joining_) begin = std::min(begin, joined_from_);
    joining_ = false;
    if (bad_from_ == bad_until_) bad_from_ = begin;
    bad_until_ = std::max(bad_until_, end);
  }

  const LogEvents& events_;
  std::string joined_;  // the fragments of a record so far
  uint64_t joined_from_ = 0;
  bool joining_ = false;
  uint64_t bad_from_ = 0, bad_until_ = 0;  // not told yet
  uint64_t unfinished_from_ = UINT64_MAX;
};

}  // namespace

Status read_log(const std::string& path, const LogEvents& events) {
  const DamagedFile file(path);
  if (file.status().ok()) LogWalk(events).walk(file);
  return file.status();
}

}  // namespace ingot::storage

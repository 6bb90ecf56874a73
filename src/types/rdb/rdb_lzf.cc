// Compressing with a table of the triples seen last, and decompressing with every offset checked.
#include "src/types/rdb/rdb_lzf.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ingot::types::rdb {

namespace {

constexpr size_t kMatchMax = (1 << 8) + (1 << 3);
constexpr size_t kLiteralsMax = 1 << 5;
// So many bytes of a match are compared before the end is looked at: it decides how long a match
// near the end of the input becomes, so it must be Redis' number.
constexpr size_t kEagerBytes = 16;

// Where each hash of three bytes was last seen in the input at hand. What it keeps of inputs before
// lies below `base_` and counts as never seen, so that it is not cleared for each: most inputs are
// far smaller than the table. The very first position is never found again, either.
class SeenTable {
 public:
  void begin(size_t bytes) {
    base_ += bytes_before_;
    if (bytes > UINT32_MAX - base_) {
      slots_.fill(0);
      base_ = 0;
    }
    bytes_before_ = static_cast<uint32_t>(bytes);
  }

  // Replaces the position kept for the three bytes at `at` and answers the one before, or 0.
  size_t exchange(std::string_view in, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(in[i])); };
    const uint32_t three = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
    uint32_t& slot = slots_[((three >> 8) - three * 5) & 0xffff];
    const size_t before = slot > base_ ? slot - base_ : 0;
    slot = base_ + static_cast<uint32_t>(at);
    return before;
  }

 private:
  std::array<uint32_t, 1 << 16> slots_{};
  uint32_t base_ = 0;
  uint32_t bytes_before_ = 0;
};

// A table that no other thread uses meanwhile. A few are kept for the next: to ask the system for
// one each time takes longer than to compress a short string.
class BorrowedTable {
 public:
  explicit BorrowedTable(size_t bytes) : table_(take()) { table_->begin(bytes); }
  ~BorrowedTable() {
    std::lock_guard lock(kept().mutex);
    if (kept().tables.size() < kKeptMax) kept().tables.push_back(std::move(table_));
  }
  BorrowedTable(const BorrowedTable&) = delete;
  BorrowedTable& operator=(const BorrowedTable&) = delete;

  SeenTable* operator->() const { return table_.get(); }

 private:
  static constexpr size_t kKeptMax = 4;  // of 256 KB
  struct Kept {
    std::mutex mutex;
    std::vector<std::unique_ptr<SeenTable>> tables;
  };
  static Kept& kept() {
    static Kept kept;
    return kept;
  }
  static std::unique_ptr<SeenTable> take() {
    {
      std::lock_guard lock(kept().mutex);
      if (auto& tables = kept().tables; !tables.empty()) {
        auto table = std::move(tables.back());
        tables.pop_back();
        return table;
      }
    }
    return std::make_unique<SeenTable>();
  }

  std::unique_ptr<SeenTable> table_;
};

size_t match_length(std::string_view in, size_t earlier, size_t at) {
  const size_t limit = std::min(in.size() - at - 2, kMatchMax);
  size_t length = 2;
  if (limit > kEagerBytes) {
    for (size_t i = 0; i < kEagerBytes; ++i) {
      ++length;
      if (in[earlier + length] != in[at + length]) return length;
    }
  }
  do {
    ++length;
  } while (length < limit && in[earlier + length] == in[at + length]);
  return length;
}

// Output whose current run of literals has room for its length in front.
class Pieces {
 public:
  Pieces(size_t bytes_max, std::string* out) : bytes_max_(bytes_max), out_(*out) {
    out_.assign(1, '\0');
  }

  void literal(char byte) {
    out_.push_back(byte);
    if (++run_ == kLiteralsMax) close_run();
  }
  void match(size_t length, size_t offset) {
    end_run();
    const size_t code = length - 2;
    const auto high = static_cast<char>(offset >> 8);
    if (code < 7) {
      out_.push_back(static_cast<char>(high + static_cast<char>(code << 5)));
    } else {
      out_.push_back(static_cast<char>(high + static_cast<char>(7 << 5)));
      out_.push_back(static_cast<char>(code - 7));
    }
    out_.push_back(static_cast<char>(offset));
    out_.push_back('\0');
  }
  void end_run() {
    if (run_ > 0) {
      out_[out_.size() - run_ - 1] = static_cast<char>(run_ - 1);
      run_ = 0;
    } else {
      out_.pop_back();
    }
  }
  bool room_for_literal() const { return out_.size() < bytes_max_; }
  bool room_for_match() const { return out_.size() - (run_ == 0 ? 1 : 0) + 3 + 1 < bytes_max_; }
  bool room_for_end() const { return out_.size() + 3 <= bytes_max_; }

 private:
  void close_run() {
    end_run();
    out_.push_back('\0');
  }

  const size_t bytes_max_;
  std::string& out_;
  size_t run_ = 0;
};

}  // namespace

bool lzf_compress(std::string_view in, size_t bytes_max, std::string* out) {
  if (in.size() < 3 || bytes_max == 0) return false;
  const BorrowedTable seen(in.size());
  Pieces pieces(bytes_max, out);
  const size_t last = in.size() - 2;
  size_t at = 0;
  while (at < last) {
    const size_t earlier = seen->exchange(in, at);
    if (earlier > 0 && earlier < at && at - earlier - 1 < kLzfOffsetMax &&
        in.substr(earlier, 3) == in.substr(at, 3)) {
      if (!pieces.room_for_match()) return false;
      const size_t length = match_length(in, earlier, at);
      pieces.match(length, at - earlier - 1);
      at += length;
      if (at >= last) break;
      seen->exchange(in, at - 2);
      seen->exchange(in, at - 1);
    } else {
      if (!pieces.room_for_literal()) return false;
      pieces.literal(in[at++]);
    }
  }
  if (!pieces.room_for_end()) return false;
  for (; at < in.size(); ++at) pieces.literal(in[at]);
  pieces.end_run();
  return true;
}

LzfStep lzf_step(std::string_view in, size_t* at, size_t bytes_max, std::string* out) {
  size_t next = *at;
  const auto byte = [&] { return static_cast<uint8_t>(in[next++]); };
  if (next == in.size()) return LzfStep::kRanOut;
  const size_t control = byte();
  if (control < kLiteralsMax) {
    const size_t length = control + 1;
    if (length > bytes_max) return LzfStep::kDamaged;
    if (length > in.size() - next) return LzfStep::kRanOut;
    out->append(in.substr(next, length));
    *at = next + length;
    return LzfStep::kTaken;
  }
  size_t length = control >> 5;
  if (length == 7) {
    if (next == in.size()) return LzfStep::kRanOut;
    length += byte();
  }
  length += 2;
  if (next == in.size()) return LzfStep::kRanOut;
  const size_t offset = ((control & 0x1f) << 8 | byte()) + 1;
  if (offset > out->size() || length > bytes_max) return LzfStep::kDamaged;
  for (size_t i = 0; i < length; ++i) out->push_back((*out)[out->size() - offset]);
  *at = next;
  return LzfStep::kTaken;
}

bool lzf_decompress(std::string_view in, size_t bytes, std::string* out) {
  out->clear();
  if (bytes / kLzfRatioMax > in.size()) return false;
  out->reserve(bytes);
  for (size_t at = 0; at < in.size();) {
    if (lzf_step(in, &at, bytes - out->size(), out) != LzfStep::kTaken) return false;
  }
  return out->size() == bytes;
}

}  // namespace ingot::types::rdb

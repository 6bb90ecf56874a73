// The dense registers, the sparse runs, the way from one to the other, and the estimate.
#include "src/types/hyperloglog_bytes.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "storage/codec.h"

namespace ingot::types {

namespace {

constexpr std::string_view kMagic = "HYLL";
constexpr size_t kEncodingAt = 4;
constexpr size_t kEstimateAt = 8;
constexpr size_t kHeaderBytes = HyperLogLog::kHeadBytes;
constexpr char kDense = 0;
constexpr char kSparse = 1;
constexpr unsigned kRegisterBits = 6;
constexpr size_t kDenseBytes = kHeaderBytes + kHllRegisters * kRegisterBits / 8;
constexpr unsigned kIndexBits = std::countr_zero(kHllRegisters);
constexpr unsigned kRankBits = 64 - kIndexBits;  // of the hash; ranks go up to one more
constexpr uint64_t kHashSeed = 0xadc83b19;
constexpr int kJoinedRunsMax = 5;

unsigned char byte_at(std::string_view bytes, size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

// MurmurHash64A, by Austin Appleby, who put it into the public domain.
uint64_t murmur(std::string_view data) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t hash = kHashSeed ^ (data.size() * kMultiplier);
  for (; data.size() >= sizeof(uint64_t); data.remove_prefix(sizeof(uint64_t))) {
    uint64_t word = storage::read_le64(data) * kMultiplier;
    word ^= word >> kShift;
    hash = (hash ^ (word * kMultiplier)) * kMultiplier;
  }
  if (!data.empty()) {
    uint64_t rest = 0;
    for (size_t i = data.size(); i-- > 0;) rest = (rest << 8) | byte_at(data, i);
    hash = (hash ^ rest) * kMultiplier;
  }
  hash = (hash ^ (hash >> kShift)) * kMultiplier;
  return hash ^ (hash >> kShift);
}

// --- sparse runs

constexpr unsigned kShortZerosMax = 64;
constexpr unsigned kValueRunMax = 4;
constexpr unsigned kValueMax = 32;

struct Run {
  enum class Kind : uint8_t { kZeros, kLongZeros, kValue } kind = Kind::kZeros;
  unsigned registers = 0;
  unsigned value = 0;

  size_t bytes() const { return kind == Kind::kLongZeros ? 2 : 1; }
};

// What one byte says of its run. A table, because branches on such bytes cannot be predicted, and
// to raise a register is to pass thousands of runs.
constexpr std::array<Run, 256> kRunOfByte = [] {
  std::array<Run, 256> runs{};
  for (unsigned code = 0; code < runs.size(); ++code) {
    if ((code & 0x80) != 0) {
      runs[code] = {Run::Kind::kValue, (code & 3) + 1, (code >> 2 & 31) + 1};
    } else if ((code & 0x40) != 0) {
      runs[code] = {Run::Kind::kLongZeros, ((code & 63) << 8) + 1};  // and the next byte
    } else {
      runs[code] = {Run::Kind::kZeros, code + 1};
    }
  }
  return runs;
}();

Run run_at(std::string_view bytes, size_t at) {
  Run run = kRunOfByte[byte_at(bytes, at)];
  if (run.kind == Run::Kind::kLongZeros) run.registers += byte_at(bytes, at + 1);
  return run;
}

char value_code(unsigned value, unsigned registers) {
  return static_cast<char>(0x80 | (value - 1) << 2 | (registers - 1));
}

// Registers that hold `value`, as few bytes as can be; nothing for none.
void append_run(std::string* out, unsigned value, unsigned registers) {
  if (registers == 0) return;
  if (value > 0) {
    out->push_back(value_code(value, registers));
  } else if (registers <= kShortZerosMax) {
    out->push_back(static_cast<char>(registers - 1));
  } else {
    out->push_back(static_cast<char>(0x40 | (registers - 1) >> 8));
    out->push_back(static_cast<char>(registers - 1));
  }
}

// --- dense registers

unsigned dense_register(std::string_view bytes, unsigned index) {
  const unsigned bit = index * kRegisterBits;
  const size_t at = kHeaderBytes + bit / 8;
  const unsigned word = byte_at(bytes, at) | static_cast<unsigned>(byte_at(bytes, at + 1)) << 8;
  return word >> bit % 8 & 63;
}

void set_dense_register(std::string* bytes, unsigned index, unsigned value) {
  const unsigned bit = index * kRegisterBits;
  const size_t at = kHeaderBytes + bit / 8;
  unsigned word = byte_at(*bytes, at) | static_cast<unsigned>(byte_at(*bytes, at + 1)) << 8;
  word = (word & ~(63u << bit % 8)) | value << bit % 8;
  (*bytes)[at] = static_cast<char>(word);
  if (at + 1 < bytes->size()) (*bytes)[at + 1] = static_cast<char>(word >> 8);
}

// --- the estimator: O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches",
// arXiv:1702.01284

double sigma(double x) {
  if (x == 1.0) return std::numeric_limits<double>::infinity();
  double weight = 1;
  double sum = x;
  double before;
  do {
    x *= x;
    before = sum;
    sum += x * weight;
    weight += weight;
  } while (before != sum);
  return sum;
}

double tau(double x) {
  if (x == 0.0 || x == 1.0) return 0;
  double weight = 1;
  double sum = 1 - x;
  double before;
  do {
    x = std::sqrt(x);
    before = sum;
    weight *= 0.5;
    sum -= std::pow(1 - x, 2) * weight;
  } while (before != sum);
  return sum / 3;
}

}  // namespace

uint64_t hll_estimate(const HllRegisters& registers) {
  constexpr double kAlpha = 0.721347520444481703680;  // 1 / (2 ln 2)
  constexpr double kCount = kHllRegisters;
  std::array<int, 64> having{};
  for (uint8_t value : registers) ++having[value & 63];
  double z = kCount * tau((kCount - having[kRankBits + 1]) / kCount);
  for (unsigned rank = kRankBits; rank >= 1; --rank) {
    z += having[rank];
    z *= 0.5;
  }
  z += kCount * sigma(having[0] / kCount);
  return static_cast<uint64_t>(std::llround(kAlpha * kCount * kCount / z));
}

HyperLogLog::HyperLogLog() : bytes_(kMagic) {
  bytes_.push_back(kSparse);
  bytes_.resize(kHeaderBytes);
  append_run(&bytes_, 0, kHllRegisters);
}

bool HyperLogLog::looks_like(std::string_view head, uint64_t length) {
  if (length < kHeaderBytes || !head.starts_with(kMagic)) return false;
  const char encoding = head[kEncodingAt];
  return encoding == kSparse || (encoding == kDense && length == kDenseBytes);
}

bool HyperLogLog::is_dense() const {
  return bytes_[kEncodingAt] == kDense;
}

std::optional<uint64_t> HyperLogLog::kept_estimate() const {
  const uint64_t kept = storage::read_le64(std::string_view(bytes_).substr(kEstimateAt));
  return kept >> 63 == 0 ? std::optional(kept) : std::nullopt;
}

void HyperLogLog::keep_estimate(uint64_t estimate) {
  std::string number;
  storage::append_le64(&number, estimate);
  bytes_.replace(kEstimateAt, number.size(), number);
}

void HyperLogLog::forget_estimate() {
  char& last = bytes_[kHeaderBytes - 1];
  last = static_cast<char>(last | 0x80);
}

HyperLogLog::Change HyperLogLog::add(std::string_view element, uint64_t sparse_bytes_max) {
  const uint64_t hash = murmur(element);
  // The mark behind the highest bit bounds the rank.
  const uint64_t rest = hash >> kIndexBits | uint64_t{1} << kRankBits;
  return raise(static_cast<unsigned>(hash % kHllRegisters),
               static_cast<unsigned>(std::countr_zero(rest)) + 1, sparse_bytes_max);
}

HyperLogLog::Change HyperLogLog::raise(unsigned index, unsigned rank, uint64_t sparse_bytes_max) {
  const Change change =
      is_dense() ? raise_dense(index, rank) : raise_sparse(index, rank, sparse_bytes_max);
  if (change == Change::kDone) forget_estimate();
  return change;
}

HyperLogLog::Change HyperLogLog::raise_dense(unsigned index, unsigned rank) {
  if (dense_register(bytes_, index) >= rank) return Change::kNone;
  set_dense_register(&bytes_, index, rank);
  return Change::kDone;
}

HyperLogLog::Change HyperLogLog::raise_sparse(unsigned index, unsigned rank,
                                              uint64_t sparse_bytes_max) {
  auto as_dense = [&] { return make_dense() ? raise_dense(index, rank) : Change::kCorrupt; };
  if (rank > kValueMax) return as_dense();
  size_t before = kHeaderBytes;  // where the run before stands
  size_t at = kHeaderBytes;
  unsigned first = 0;
  Run run;
  for (; at < bytes_.size(); at += run.bytes()) {
    run = run_at(bytes_, at);
    if (index < first + run.registers) break;
    first += run.registers;
    before = at;
  }
  if (at >= bytes_.size()) return Change::kCorrupt;
  if (run.value >= rank) return Change::kNone;
  std::string split;
  append_run(&split, run.value, index - first);
  append_run(&split, rank, 1);
  append_run(&split, run.value, first + run.registers - 1 - index);
  if (split.size() > run.bytes() && bytes_.size() + split.size() - run.bytes() > sparse_bytes_max) {
    return as_dense();
  }
  bytes_.replace(at, run.bytes(), split);
  join_values(before);
  return Change::kDone;
}

// Joins neighbours of one value, looking at a few runs from `at` on.
void HyperLogLog::join_values(size_t at) {
  for (int looks = 0; looks < kJoinedRunsMax && at < bytes_.size(); ++looks) {
    const Run run = run_at(bytes_, at);
    if (run.kind == Run::Kind::kValue && at + 1 < bytes_.size()) {
      const Run next = run_at(bytes_, at + 1);
      const unsigned registers = run.registers + next.registers;
      if (next.value == run.value && registers <= kValueRunMax) {
        bytes_.replace(at, 2, 1, value_code(run.value, registers));
        continue;  // perhaps the next one joins, too
      }
    }
    at += run.bytes();
  }
}

bool HyperLogLog::make_dense() {
  if (is_dense()) return true;
  HllRegisters registers{};
  if (!merge_into(&registers)) return false;
  bytes_.resize(kHeaderBytes);
  bytes_[kEncodingAt] = kDense;
  bytes_.resize(kDenseBytes);
  for (unsigned index = 0; index < kHllRegisters; ++index) {
    if (registers[index] != 0) set_dense_register(&bytes_, index, registers[index]);
  }
  return true;
}

bool HyperLogLog::merge_into(HllRegisters* registers) const {
  auto raise_to = [&](unsigned index, unsigned value) {
    uint8_t& reg = (*registers)[index];
    if (value > reg) reg = static_cast<uint8_t>(value);
  };
  if (is_dense()) {
    for (unsigned index = 0; index < kHllRegisters; ++index) {
      raise_to(index, dense_register(bytes_, index));
    }
    return true;
  }
  unsigned index = 0;
  for (size_t at = kHeaderBytes; at < bytes_.size();) {
    const Run run = run_at(bytes_, at);
    if (index + run.registers > kHllRegisters) return false;
    for (unsigned end = index + run.registers; index < end; ++index) raise_to(index, run.value);
    at += run.bytes();
  }
  return index == kHllRegisters;
}

std::string HyperLogLog::describe_runs() const {
  std::string text;
  for (size_t at = kHeaderBytes; at < bytes_.size();) {
    const Run run = run_at(bytes_, at);
    const std::string registers = std::to_string(run.registers);
    if (!text.empty()) text += ' ';
    switch (run.kind) {
      case Run::Kind::kZeros:
        text += "z:" + registers;
        break;
      case Run::Kind::kLongZeros:
        text += "Z:" + registers;
        break;
      case Run::Kind::kValue:
        text += "v:" + std::to_string(run.value) + "," + registers;
        break;
    }
    at += run.bytes();
  }
  return text;
}

}  // namespace ingot::types

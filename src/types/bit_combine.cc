// Combining strings byte by byte.
#include "src/types/bit_combine.h"

#include <algorithm>
#include <utility>

namespace ingot::types {

using storage::kStringChunkBytes;

namespace {

bool is_zero(const std::string& bytes) {
  return bytes.find_first_not_of('\0') == std::string::npos;
}

uint64_t chunks_of(const BitCombination& combination) {
  return (combination.length() + kStringChunkBytes - 1) / kStringChunkBytes;
}

// Bytes [offset, offset + bytes) of an operand, zero bytes behind its end.
void read_operand(storage::Reader& data, const BitOperand& operand, uint64_t offset, uint64_t bytes,
                  std::string* out) {
  out->clear();
  if (offset < operand.length) {
    const uint64_t there = std::min(bytes, operand.length - offset);
    if (operand.chunks) {
      read_string(data, *operand.chunks, offset, there, out);
    } else {
      out->assign(operand.bytes, offset, there);
    }
  }
  out->resize(bytes);
}

void combine(BitOperation operation, const std::string& with, std::string* into) {
  char* out = into->data();
  const char* in = with.data();
  const size_t size = into->size();
  switch (operation) {
    case BitOperation::kAnd:
      for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>(out[i] & in[i]);
      break;
    case BitOperation::kOr:
      for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>(out[i] | in[i]);
      break;
    case BitOperation::kXor:
      for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>(out[i] ^ in[i]);
      break;
    case BitOperation::kNot:
      break;  // has one operand
  }
}

}  // namespace

BitOperand::BitOperand(const Record& record) : length(string_length(record)) {
  if (record.collection()) {
    chunks = chunks_of(record);
  } else {
    bytes = record.payload();
  }
}

BitCombination::BitCombination(BitOperation operation, std::vector<BitOperand> operands)
    : operation_(operation), operands_(std::move(operands)) {
  for (const BitOperand& operand : operands_) {
    length_ = std::max(length_, operand.length);
    bytes_to_read_ += operand.length;
  }
}

void BitCombination::chunk(storage::Reader& data, uint64_t number, std::string* out) const {
  const uint64_t offset = number * kStringChunkBytes;
  const uint64_t bytes = std::min<uint64_t>(kStringChunkBytes, length_ - offset);
  read_operand(data, operands_.front(), offset, bytes, out);
  if (operation_ == BitOperation::kNot) {
    for (char& byte : *out) byte = static_cast<char>(~byte);
  }
  std::string other;
  for (size_t i = 1; i < operands_.size(); ++i) {
    read_operand(data, operands_[i], offset, bytes, &other);
    combine(operation_, other, out);
  }
}

BuiltValue build_combination(storage::Reader& data, const BitCombination& combination,
                             const PutElement& put) {
  BuiltValue result{.metadata = {.type = storage::ValueType::kString, .limit_passed = true},
                    .payload = {},
                    .size = combination.length(),
                    .error = {}};
  if (combination.length() == 0) return result;
  if (combination.length() <= storage::kInlineStringMax) {
    combination.chunk(data, 0, &result.payload);
    return result;
  }
  result.metadata.collection = storage::Metadata::Collection{.count = combination.length()};
  std::string bytes;
  for (uint64_t number = 0; number < chunks_of(combination) && !data.failed(); ++number) {
    combination.chunk(data, number, &bytes);
    if (!is_zero(bytes)) put_chunk(put, static_cast<uint32_t>(number), bytes);
  }
  return result;
}

}  // namespace ingot::types

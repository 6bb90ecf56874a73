// Combining strings; see bit_combine.h.
#include "src/types/bit_combine.h"

#include <algorithm>
#include <utility>

#include "src/types/string_value.h"

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
  if (offset < operand.length()) {
    const uint64_t there = std::min(bytes, operand.length() - offset);
    if (operand.collection) {
      read_string(data, operand.collection->id, offset, there, out);
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

BitOperand::BitOperand(const Record& record) : collection(record.collection()) {
  if (!collection) bytes = record.payload();
}

bool BitOperand::is_same(const BitOperand& other) const {
  if (collection.has_value() != other.collection.has_value()) return false;
  if (!collection) return bytes == other.bytes;
  return collection->id == other.collection->id &&
         collection->revision == other.collection->revision;
}

BitCombination::BitCombination(BitOperation operation, std::vector<BitOperand> operands)
    : operation_(operation), operands_(std::move(operands)) {
  for (const BitOperand& operand : operands_) {
    length_ = std::max(length_, operand.length());
    bytes_to_read_ += operand.length();
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

CombinedString::CombinedString(exec::Services& services, BitCombination combination,
                               storage::Reader& data)
    : combination_(std::move(combination)), string_(services) {
  std::string bytes;
  for (uint64_t number = 0; number < chunks_of(combination_); ++number) {
    combination_.chunk(data, number, &bytes);
    if (data.failed()) string_.fail(data.error());
    if (data.failed() || !string_.status().ok()) return;
    if (number == 0 || !is_zero(bytes)) string_.put_chunk(static_cast<uint32_t>(number), bytes);
  }
  string_.flush();
}

bool CombinedString::built_from(const BitCombination& wanted) const {
  const auto& made = combination_.operands();
  return std::equal(made.begin(), made.end(), wanted.operands().begin(), wanted.operands().end(),
                    [](const BitOperand& a, const BitOperand& b) { return a.is_same(b); });
}

command::Prepare prepare_combined(exec::Services& services, int db, BitOperation operation,
                                  std::vector<std::string> keys) {
  return [&services, db, operation, names = std::move(keys)](
             KeyReader& reader, exec::Store&,
             storage::Status* error) -> std::shared_ptr<command::Prepared> {
    std::vector<BitOperand> operands;
    for (const std::string& name : names) {
      Record record;
      const bool found = reader.peek(db, name, &record) && is_string(record);
      operands.push_back(found ? BitOperand(record) : BitOperand());
    }
    *error = reader.data().error();
    if (reader.data().failed()) return nullptr;
    auto built = std::make_shared<CombinedString>(
        services, BitCombination(operation, std::move(operands)), reader.data());
    *error = built->status();
    return error->ok() ? built : nullptr;
  };
}

storage::Metadata::Collection add_combined(KeyWriter& keys, const BitCombination& combination) {
  const storage::Metadata::Collection result{.id = keys.new_collection(),
                                             .count = combination.length()};
  std::string bytes;
  std::string record;
  for (uint64_t number = 0; number < chunks_of(combination); ++number) {
    combination.chunk(keys.data(), number, &bytes);
    if (keys.data().failed()) break;
    if (is_zero(bytes)) continue;
    encode_chunk(bytes, &record);
    keys.overlay().put(storage::Space::kData,
                       storage::chunk_key(result.id, static_cast<uint32_t>(number)), record);
  }
  return result;
}

}  // namespace ingot::types

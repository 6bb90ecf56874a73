// Encoding what replicas are told, with the transactions and databases around it.
#include "src/types/told.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "storage/check.h"

namespace ingot::types {

using storage::Status;

namespace {

void append_header(std::string* out, char mark, uint64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, std::end(digits), number).ptr;
  out->push_back(mark);
  out->append(digits, end).append("\r\n");
}

void append_word(std::string* out, std::string_view word) {
  append_header(out, '$', word.size());
  out->append(word).append("\r\n");
}

constexpr std::string_view kMulti = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view kExec = "*1\r\n$4\r\nEXEC\r\n";

void select(int db, int* selected, const ToldBytes::Piece& piece) {
  if (std::exchange(*selected, db) == db) return;
  std::string command;
  const std::string number = std::to_string(db);
  const std::string_view words[] = {"SELECT", number};
  append_command(&command, words);
  piece(command);
}

}  // namespace

void append_command(std::string* out, Told::Words words) {
  append_header(out, '*', words.size());
  for (const std::string_view word : words) append_word(out, word);
}

void Told::tell(int db, Words words, size_t at, const LongWord& word) {
  // What is large takes no more than it must.
  constexpr size_t kGrownBytes = 1 << 20;
  constexpr size_t kHeaderBytes = 24;
  size_t bytes = kHeaderBytes;
  for (const std::string_view each : words) bytes += each.size() + kHeaderBytes;
  if (bytes > kGrownBytes) bytes_.reserve(bytes_.size() + bytes);
  Command& command = commands_.emplace_back(
      Command{.db = db, .unit = unit_, .count = 1, .begin = bytes_.size(), .source = word.source});
  if (word.source == nullptr) return append_command(&bytes_, words);
  append_header(&bytes_, '*', words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    if (i != at) {
      append_word(&bytes_, words[i]);
      continue;
    }
    append_header(&bytes_, '$', word.bytes);
    command.source_at = bytes_.size();
    bytes_.append("\r\n");
  }
}

void Told::tell(int db, uint64_t commands, std::shared_ptr<const ToldBytes> encoded) {
  commands_.push_back({.db = db,
                       .unit = unit_,
                       .count = commands,
                       .begin = bytes_.size(),
                       .source_at = bytes_.size(),
                       .source = std::move(encoded)});
}

bool Told::only_passes_on() const {
  return std::ranges::all_of(commands_, [](const Command& told) { return told.count == 0; });
}

void Told::pass_on(std::string_view bytes, std::optional<int> db,
                   std::shared_ptr<const ToldBytes> more) {
  end_unit();
  commands_.push_back({.db = db.value_or(-1),
                       .unit = unit_,
                       .count = 0,
                       .begin = bytes_.size(),
                       .source_at = bytes_.size() + bytes.size(),
                       .source = std::move(more)});
  bytes_ += bytes;
  end_unit();
}

void Told::rollback(const Savepoint& savepoint) {
  INGOT_CHECK(savepoint.commands <= commands_.size() && savepoint.bytes <= bytes_.size());
  commands_.resize(savepoint.commands);
  bytes_.resize(savepoint.bytes);
}

void Told::separate(const Savepoint& since) {
  for (size_t i = since.commands; i < commands_.size(); ++i) commands_[i].unit = unit_++;
}

Status Told::write(const Command& command, size_t end, const ToldBytes::Piece& piece,
                   const Takes& takes) const {
  const std::string_view bytes = std::string_view(bytes_).substr(0, end);
  if (command.source == nullptr) {
    piece(bytes.substr(command.begin));
    return {};
  }
  piece(bytes.substr(command.begin, command.source_at - command.begin));
  Status status = takes(*command.source) ? Status() : command.source->read(piece);
  piece(bytes.substr(command.source_at));
  return status;
}

Status Told::write(int* selected, const ToldBytes::Piece& piece, const Takes& takes) const {
  for (size_t first = 0; first < commands_.size();) {
    size_t end = first;
    uint64_t count = 0;
    for (; end < commands_.size() && commands_[end].unit == commands_[first].unit; ++end) {
      count += commands_[end].count;
    }
    if (count > 0) select(commands_[first].db, selected, piece);
    if (count > 1) piece(kMulti);
    for (; first < end; ++first) {
      const Command& command = commands_[first];
      if (command.count > 0) {
        select(command.db, selected, piece);
      } else if (command.db >= 0) {
        *selected = command.db;
      }
      const bool is_last = first + 1 == commands_.size();
      const size_t ends = is_last ? bytes_.size() : commands_[first + 1].begin;
      Status status = write(command, ends, piece, takes);
      if (!status.ok()) return status;
    }
    if (count > 1) piece(kExec);
  }
  return {};
}

}  // namespace ingot::types

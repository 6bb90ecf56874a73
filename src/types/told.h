// What replicas are told of a group: commands, encoded, in the order in which their effects came,
// undone with what caused them. The writer's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/status.h"

namespace ingot::types {

// Bytes of told commands that are too many to hold: they stand in the engine, and are read when the
// group is committed.
class ToldBytes {
 public:
  virtual ~ToldBytes() = default;
  using Piece = std::function<void(std::string_view)>;
  // Hands out all of them, in order. Reads the disk.
  [[nodiscard]] virtual storage::Status read(const Piece& piece) const = 0;
};

// A word of a command that is not held.
struct LongWord {
  uint64_t bytes = 0;
  std::shared_ptr<const ToldBytes> source;  // null: there is none
};

class Told {
 public:
  using Words = std::span<const std::string_view>;

  void tell(int db, Words words) { tell(db, words, 0, {}); }
  void tell(int db, std::initializer_list<std::string_view> words) {
    tell(db, Words(words.begin(), words.size()));
  }
  // words[at] is the long word, if there is one.
  void tell(int db, Words words, size_t at, const LongWord& word);
  // So many commands, as `encoded` hands them out.
  void tell(int db, uint64_t commands, std::shared_ptr<const ToldBytes> encoded);
  // Bytes of a stream as they are, and others behind them, if any, that are not held. Behind these
  // that database is selected; nothing: the same.
  void pass_on(std::string_view bytes, std::optional<int> db,
               std::shared_ptr<const ToldBytes> more = nullptr);

  // What was told since the last call belongs together: more than one command is a transaction.
  void end_unit() { ++unit_; }
  bool empty() const { return commands_.empty(); }
  bool only_passes_on() const;  // no command of its own
  size_t bytes() const { return bytes_.size() + commands_.size() * sizeof(Command); }

  struct Savepoint {
    size_t commands, bytes;
  };
  Savepoint savepoint() const { return {.commands = commands_.size(), .bytes = bytes_.size()}; }
  void rollback(const Savepoint& savepoint);
  // Each command since then is a unit of its own.
  void separate(const Savepoint& since);

  // Hands out the bytes of the stream. `*selected` is the database that it has selected; -1: none
  // yet. What is not held goes to `takes` as a whole first, which may decline it.
  using Takes = std::function<bool(const ToldBytes& bytes)>;
  [[nodiscard]] storage::Status write(int* selected, const ToldBytes::Piece& piece,
                                      const Takes& takes) const;

 private:
  struct Command {
    int db;  // -1: any, see pass_on()
    uint64_t unit;
    uint64_t count;        // 0: passed on; more than one only of what is not held
    size_t begin;          // in bytes_, up to the next one's
    size_t source_at = 0;  // in bytes_, where those of `source` belong
    std::shared_ptr<const ToldBytes> source;  // or null
  };
  storage::Status write(const Command& command, size_t end, const ToldBytes::Piece& piece,
                        const Takes& takes) const;

  std::string bytes_;
  std::vector<Command> commands_;
  uint64_t unit_ = 0;
};

// Appends a command as a replica reads it.
void append_command(std::string* out, Told::Words words);

}  // namespace ingot::types

// Walking logs up to the first damage, and cutting them there.
//
// RocksDB and LevelDB write the same form: blocks of 32 KB, each a row of fragments that never
// cross into the next block.
//
//   checksum (4)  CRC-32C of the type and the bytes, rotated right by 15, plus a constant
//   length (2)    of the bytes
//   type (1)      1: a whole record; 2, 3, 4: its first, a middle, its last fragment
//   bytes
//
// A rest of less than seven bytes is filled up with zeros.
#include "storage/log_end.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

#include "storage/codec.h"
#include "storage/durable_file.h"
#include "storage/log_ledger.h"
#include "storage/salvage/checksum.h"

namespace ingot::storage {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = 32 << 10;
constexpr size_t kHeaderBytes = 7;
enum Type : uint8_t { kWhole = 1, kFirst, kMiddle, kLast };

bool all_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

struct Walk {
  // kTorn: the file ends within a record. kUnreadable: the disk failed, so nothing is known.
  enum class End : uint8_t { kClean, kTorn, kDamaged, kUnreadable };
  End end = End::kClean;
  uint64_t whole = 0;         // where the last whole record ends
  uint64_t wrong_from = 0;    // of kTorn and kDamaged: where the fragment begins that is wrong
  bool wrong_length = false;  // of kDamaged: that fragment is whole but for its length
};

class Walker {
 public:
  // Checksums are looked at from `verify_from` on.
  Walker(const fs::path& path, uint64_t verify_from)
      : file_(path, std::ios::binary | std::ios::ate), verify_from_(verify_from) {
    const auto end = file_.tellg();
    if (end < 0) return;
    bytes_ = static_cast<uint64_t>(end);
    file_.seekg(0);
    is_open_ = true;
  }

  Walk walk() {
    for (uint64_t begin = 0; begin < bytes_ && !over_; begin += kBlockBytes) {
      walk_block(begin, next_block());
    }
    if (!over_ && in_record_) stop(Walk::End::kTorn, bytes_);
    if (!is_open_ || file_.bad()) result_.end = Walk::End::kUnreadable;
    return result_;
  }

 private:
  std::string_view next_block() {
    file_.read(block_.data(), static_cast<std::streamsize>(kBlockBytes));
    return std::string_view(block_).substr(0, static_cast<size_t>(file_.gcount()));
  }

  void walk_block(uint64_t begin, std::string_view block) {
    size_t at = 0;
    while (!over_ && kBlockBytes - at >= kHeaderBytes && at < block.size()) {
      const std::string_view rest = block.substr(at);
      const uint64_t from = begin + at;
      if (rest.size() < kHeaderBytes) return stop(Walk::End::kTorn, from);
      const size_t length = static_cast<uint8_t>(rest[4]) | static_cast<uint8_t>(rest[5]) << 8;
      const auto type = static_cast<uint8_t>(rest[6]);
      const size_t size = kHeaderBytes + length;
      const uint64_t end = begin + at + size;
      if (size > rest.size() && is_whole_but_for_length(rest)) {
        result_.wrong_length = true;
        return stop(Walk::End::kDamaged, from);
      }
      if (type < kWhole || type > kLast || at + size > kBlockBytes) {
        return stop(is_zero_tail(rest) ? Walk::End::kTorn : Walk::End::kDamaged, from);
      }
      if (size > rest.size()) return stop(Walk::End::kTorn, from);
      if (end > verify_from_ && read_le32(rest) != masked_crc(rest.substr(6, length + 1))) {
        return stop(Walk::End::kDamaged, from);
      }
      if ((type == kWhole || type == kFirst) == in_record_) {
        return stop(Walk::End::kDamaged, from);
      }
      in_record_ = type == kFirst || type == kMiddle;
      at += size;
      if (!in_record_) result_.whole = end;
    }
  }

  // Its checksum, which does not cover the length, is right for a shorter one than it says. Both
  // engines take such a fragment for one that a crash cut off.
  static bool is_whole_but_for_length(std::string_view rest) {
    MaskedCrc crc;
    for (const char& byte : rest.substr(kHeaderBytes - 1)) {
      crc.add(std::string_view(&byte, 1));
      if (crc.value() == read_le32(rest)) return true;
    }
    return false;
  }

  // Space that was given in advance, and nothing behind it.
  bool is_zero_tail(std::string_view rest) {
    while (all_zero(rest)) {
      rest = next_block();
      if (rest.empty()) return true;
    }
    return false;
  }

  void stop(Walk::End end, uint64_t wrong_from) {
    over_ = true;
    result_.end = end;
    result_.wrong_from = wrong_from;
  }

  std::ifstream file_;
  std::string block_ = std::string(kBlockBytes, 0);
  bool is_open_ = false;
  uint64_t bytes_ = 0;
  const uint64_t verify_from_;
  bool in_record_ = false;
  bool over_ = false;
  Walk result_;
};

struct Log {
  fs::path path;
  uint64_t bytes;
};
using Logs = std::map<uint64_t, Log>;  // by number

Status logs_in(const std::string& directory, Logs* logs) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string stem = it->path().stem().string();
    uint64_t number = 0;
    const auto parsed = std::from_chars(stem.data(), stem.data() + stem.size(), number);
    if (it->path().extension() != ".log" || parsed.ec != std::errc()) continue;
    if (!it->is_regular_file(error)) continue;
    const uint64_t bytes = it->file_size(error);
    if (error) break;
    (*logs)[number] = {.path = it->path(), .bytes = bytes};
  }
  if (!error) return {};
  return {Status::Code::kIo, fmt::format("cannot look at the logs: {}", error.message())};
}

// Ends the file there and puts it on stable storage.
Status cut(const fs::path& path, uint64_t bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool done = fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  return done ? Status() : Status(Status::Code::kIo, fmt::format("cannot write {}", path.string()));
}

// Empty: there is none.
fs::path manifest_in(const std::string& directory) {
  std::string name;
  std::getline(std::ifstream(directory + "/CURRENT"), name);
  const fs::path manifest = fs::path(directory) / name;
  std::error_code error;
  return !name.empty() && fs::is_regular_file(manifest, error) ? manifest : fs::path();
}

// What both engines would take for the last change of the tables, cut off by a crash.
Status check_manifest(const fs::path& manifest) {
  if (manifest.empty() || !Walker(manifest, UINT64_MAX).walk().wrong_length) return {};
  return {Status::Code::kCorruption, fmt::format("{} is damaged", manifest.string())};
}

// Whether the log that was synced last is there, or all of it is in tables. The engines miss none.
Status check_marked_log(const fs::path& manifest, FileForm form, const Logs& logs,
                        const SyncedMark& mark) {
  if (mark.bytes == 0 || logs.contains(mark.log) || manifest.empty()) return {};
  Catalogue catalogue;
  Status status = read_manifest(manifest, form, &catalogue);
  if (!status.ok() || mark.log < catalogue.first_log) return status;
  return {Status::Code::kCorruption,
          fmt::format("the log {:06}.log, of which {} bytes were synced, is missing beside {}",
                      mark.log, mark.bytes, manifest.string())};
}

// Whether the log was begun behind all that is there of the one before it.
bool is_linked(const LogLink& link, uint64_t number, const Logs& logs) {
  if (link.log != number) return false;
  const auto before = logs.find(link.before);
  return before == logs.end() || before->second.bytes == link.before_bytes;
}

uint64_t bytes_behind(const Logs& logs, Logs::const_iterator it) {
  uint64_t bytes = 0;
  while (++it != logs.end()) bytes += it->second.bytes;
  return bytes;
}

// The latest first: what is left is without a hole at any time.
Status cut_from(Logs& logs, Logs::iterator it, uint64_t bytes) {
  for (auto last = std::prev(logs.end()); last != it; --last) {
    if (Status status = cut(last->second.path, 0); !status.ok()) return status;
    last->second.bytes = 0;
  }
  it->second.bytes = bytes;
  return cut(it->second.path, bytes);
}

// Cuts `logs` where the first of them is wrong behind the mark.
Status cut_logs(const std::string& directory, Logs& logs, const SyncedMark& mark,
                const std::optional<LogLink>& link,
                const std::function<void(const std::string&)>& on_log) {
  for (auto it = logs.begin(); it != logs.end(); ++it) {
    const uint64_t number = it->first;
    const auto& [path, bytes] = it->second;
    if (number > mark.log && bytes > 0 && link && !is_linked(*link, number, logs)) {
      if (on_log) {
        on_log(
            fmt::format("The power failed before what precedes {} was synced: its {} bytes, and {} "
                        "bytes behind them, are lost",
                        path.string(), bytes, bytes_behind(logs, it)));
      }
      return cut_from(logs, it, 0);
    }
    const uint64_t synced = number < mark.log ? bytes : number == mark.log ? mark.bytes : 0;
    if (bytes < synced) {
      return {Status::Code::kCorruption,
              fmt::format("{} has lost bytes that were synced", path.string())};
    }
    const Walk walk = Walker(path, synced).walk();
    if (walk.end == Walk::End::kClean) continue;
    if (walk.end == Walk::End::kUnreadable) {
      return {Status::Code::kIo, fmt::format("cannot read {}", path.string())};
    }
    // The mark stands where an append ended: between fragments, or behind the head of one.
    const bool was_synced = walk.wrong_from < synced && walk.wrong_from + kHeaderBytes != synced;
    if (was_synced || number < mark.log) {
      return {Status::Code::kCorruption,
              fmt::format("{} is damaged behind byte {}, in what was synced", path.string(),
                          walk.whole)};
    }
    const uint64_t behind = bytes_behind(logs, it);
    // An end that is merely cut off is nothing to speak of.
    if (on_log && (walk.end != Walk::End::kTorn || behind > 0)) {
      on_log(
          fmt::format("The power failed while {} was written: its last {} bytes, and {} bytes "
                      "behind them, were not synced and are lost",
                      path.string(), bytes - walk.whole, behind));
    }
    // What was synced may end in the middle of a record. It must not be missed at the next start,
    // should this one be cut short.
    if (number == mark.log && walk.whole < synced) {
      Status status = lower_synced_mark(directory, {.log = number, .bytes = walk.whole});
      if (!status.ok()) return status;
    }
    return cut_from(logs, it, walk.whole);
  }
  return {};
}

}  // namespace

Status cut_lost_end(const std::string& directory, FileForm form,
                    const std::function<void(const std::string&)>& on_log) {
  const fs::path manifest = manifest_in(directory);
  if (Status status = check_manifest(manifest); !status.ok()) return status;
  Logs logs;
  if (Status status = logs_in(directory, &logs); !status.ok()) return status;
  SyncedMark mark;
  if (read_synced_mark(directory, &mark)) {
    Status there = check_marked_log(manifest, form, logs, mark);
    if (!there.ok()) return there;
    if (Status status = cut_logs(directory, logs, mark, read_log_link(directory), on_log);
        !status.ok())
      return status;
  }
  // The mark will soon say so of all of them: they may stay for a while when the engine has read
  // them.
  for (auto it = logs.lower_bound(mark.log); it != logs.end(); ++it) {
    if (Status status = cut(it->second.path, it->second.bytes); !status.ok()) return status;
  }
  return {};
}

}  // namespace ingot::storage

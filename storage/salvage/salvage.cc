// Which files count, and reading them all into one place.
#include "storage/salvage/salvage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <utility>

#include "storage/durable_file.h"
#include "storage/salvage/log_records.h"
#include "storage/salvage/salvaged_table.h"

namespace ingot::storage {

namespace fs = std::filesystem;

namespace {

// Nothing of what cannot be read.
std::string content_of(const std::string& path) {
  std::string content;
  return read_file(path, &content).ok() ? content : std::string();
}

std::string_view engine_name(FileForm form) {
  return form == FileForm::kRocksdb ? "rocksdb" : "leveldb";
}

// What is made beside the data, so that it follows from it.
bool is_derived(Space space) {
  return space == Space::kOrder || space == Space::kExpiry;
}

}  // namespace

bool Loss::touches(Space in, std::string_view prefix) const {
  if ((space && *space != in) || brings_back) return false;
  const bool ends_before = until && *until < prefix;
  const bool begins_behind = after > prefix && !std::string_view(after).starts_with(prefix);
  return !ends_before && !begins_behind;
}

Salvage::Salvage(std::string directory, const std::string& scratch)
    : directory_(std::move(directory)), records_(scratch) {}

Salvage::~Salvage() {
  if (lock_ >= 0) close(lock_);
}

std::string_view Salvage::engine() const {
  return engine_name(form_);
}

Status Salvage::gather() {
  if (Status status = lock(); !status.ok()) return status;
  if (Status status = find_engine(); !status.ok()) return status;
  if (Status status = read_catalogue(); !status.ok()) return status;
  read_tables();
  read_logs();
  return records_.status();
}

// The directory may be on a disk that takes no writes: a lock for reading keeps a server out, too.
Status Salvage::lock() {
  std::error_code error;
  if (!fs::is_directory(directory_, error)) {
    return {Status::Code::kInvalid, fmt::format("{} is no directory", directory_)};
  }
  lock_ = open(path_of("LOCK").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock_ < 0) return {};
  struct flock whole = {};
  whole.l_type = F_RDLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(lock_, F_SETLK, &whole) == 0) return {};
  return {Status::Code::kBusy, fmt::format("{} is in use by another process", directory_)};
}

Status Salvage::find_engine() {
  const std::string marker = content_of(path_of("ENGINE"));
  for (const FileForm form : {FileForm::kRocksdb, FileForm::kLeveldb}) {
    form_ = form;
    if (marker == engine_name(form)) return {};
  }
  const std::string_view found = engine_by_files(directory_);
  if (found.empty()) {
    return {Status::Code::kInvalid, fmt::format("{} holds no data of Ingot's", directory_)};
  }
  form_ = found == "rocksdb" ? FileForm::kRocksdb : FileForm::kLeveldb;
  notes_.push_back(fmt::format("ENGINE is damaged: by its files the engine is {}", engine()));
  return {};
}

Status Salvage::read_catalogue() {
  std::vector<std::string> manifests;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.starts_with("MANIFEST-")) manifests.push_back(name);
  }
  if (error) {
    return {Status::Code::kIo, fmt::format("cannot read {}: {}", directory_, error.message())};
  }
  std::string current = content_of(path_of("CURRENT"));
  if (current.ends_with('\n')) current.pop_back();
  if (std::ranges::find(manifests, current) == manifests.end()) {
    // Of several, some may have been given up, or never finished.
    if (manifests.size() != 1) {
      losses_.push_back({.what = "It is not known which tables are the current ones (CURRENT or "
                                 "its manifest is lost): all are taken, and what was removed may "
                                 "be back",
                         .newest = 0,
                         .brings_back = true});
      return {};
    }
    notes_.push_back(fmt::format("CURRENT is damaged: {} is the only manifest", manifests[0]));
    current = manifests[0];
  }
  const Status status = read_manifest(path_of(current), form_, &catalogue_);
  has_catalogue_ = status.ok() && catalogue_.damaged_bytes == 0 && !catalogue_.empty && !lost_end();
  if (!has_catalogue_) {
    losses_.push_back({.what = fmt::format("{} is damaged, so it is not known which tables are the "
                                           "current ones: all are taken, and what was removed may "
                                           "be back",
                                           current),
                       .newest = 0,
                       .brings_back = true});
  }
  return {};
}

// Nothing tells that of a manifest but the files: a whole table was made behind what it knows, and
// the log that counts by it, or a table, is gone. (A server that was killed leaves a table, too,
// but no gap. At a start RocksDB counts from the number behind the last log, and the log has a
// later one.)
bool Salvage::lost_end() const {
  const auto tables = numbered(form_ == FileForm::kRocksdb ? ".sst" : ".ldb");
  if (std::none_of(tables.lower_bound(catalogue_.next_file), tables.end(), [&](const auto& table) {
        return SalvagedTable(path_of(table.second), form_).has_index();
      })) {
    return false;
  }
  const auto logs = numbered(".log");
  return logs.lower_bound(catalogue_.first_log) == logs.lower_bound(catalogue_.next_file) ||
         std::ranges::any_of(catalogue_.tables,
                             [&](const auto& table) { return !tables.contains(table.first); });
}

std::map<uint64_t, std::string> Salvage::numbered(std::string_view extension) const {
  std::map<uint64_t, std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    const std::string stem = it->path().stem();
    uint64_t number = 0;
    const auto parsed = std::from_chars(stem.data(), stem.data() + stem.size(), number);
    if (it->path().extension() != extension || parsed.ec != std::errc()) continue;
    files[number] = it->path().filename();
  }
  return files;
}

// RocksDB numbers the column families as Ingot named them when it made the directory.
std::optional<Space> Salvage::space_of_family(const std::string& family) const {
  for (const Space space : kAllSpaces) {
    if (space_name(space) == family) return space;
  }
  return std::nullopt;
}

void Salvage::read_tables() {
  const auto files = numbered(form_ == FileForm::kRocksdb ? ".sst" : ".ldb");
  for (const auto& [number, name] : files) {
    if (!has_catalogue_ || catalogue_.tables.contains(number)) read_table(number, name);
  }
  if (!has_catalogue_) return;
  for (const auto& [number, table] : catalogue_.tables) {
    if (files.contains(number)) continue;
    const auto family = catalogue_.families.find(table.family);
    Loss loss = {.what = fmt::format("table {:06} is missing", number), .newest = table.newest};
    if (family != catalogue_.families.end()) loss.space = space_of_family(family->second);
    // Keys from the smallest on: `first` is the one before them.
    lose(std::move(loss), table.smallest.substr(0, table.smallest.size() - 1), table.largest);
  }
}

void Salvage::read_table(uint64_t number, const std::string& name) {
  SalvagedTable table(path_of(name), form_);
  const auto listed = catalogue_.tables.find(number);
  std::string family = table.family();
  if (family.empty() && listed != catalogue_.tables.end()) {
    const auto found = catalogue_.families.find(listed->second.family);
    if (found != catalogue_.families.end()) family = found->second;
  }
  const std::optional<Space> space = space_of_family(family);
  const bool is_leveldb = form_ == FileForm::kLeveldb;
  const auto lost = [&](const std::string& what) {
    return Loss{.what = what,
                .space = space,
                .newest = listed != catalogue_.tables.end() ? listed->second.newest : UINT64_MAX};
  };
  if (!table.status().ok()) return lose(lost(table.status().message()), {}, std::nullopt);
  if (!is_leveldb && !space) {
    if (family.empty()) lose(lost(name + " is damaged: its space is not known"), {}, std::nullopt);
    return;  // RocksDB's own column family is empty
  }
  table.walk(
      {.record =
           [&](const VersionedKey& key, std::string_view value) {
             const bool removed = key.kind == kRemovedKind;
             if (!is_leveldb) {
               if (is_derived(*space)) return;
               return records_.add(*space, key.key, key.sequence, removed, value);
             }
             // (A space byte alone parts the spaces.)
             if (key.key.size() < 2 || static_cast<uint8_t>(key.key[0]) >= kSpaceCount) return;
             const auto in = static_cast<Space>(key.key[0]);
             if (is_derived(in)) return;
             records_.add(in, key.key.substr(1), key.sequence, removed, value);
           },
       .damage =
           [&](uint64_t begin, uint64_t end, std::string_view after,
               const std::optional<std::string>& until) {
             Loss loss = lost(
                 begin < end ? fmt::format("{}: bytes {} to {} are damaged", name, begin, end - 1)
                             : fmt::format("{} is cut off behind byte {}", name, begin));
             loss.is_narrow = until.has_value();
             lose(std::move(loss), after, until);
           },
       .harmless =
           [&](std::string_view what) { notes_.push_back(fmt::format("{}: {}", name, what)); }});
  records_.settle();
}

// A loss of the keys behind `first` up to `last`, as they stand in the engine's files.
void Salvage::lose(Loss loss, std::string_view first, const std::optional<std::string>& last) {
  const auto add = [&](Loss one) {
    if (one.space && is_derived(*one.space)) {
      notes_.push_back(
          fmt::format("{} ({}, which is made anew)", one.what, space_name(*one.space)));
    } else {
      losses_.push_back(std::move(one));
    }
  };
  if (form_ == FileForm::kRocksdb) {
    loss.after = first;
    loss.until = last;
    return add(std::move(loss));
  }
  // LevelDB has the space before each key.
  const size_t begin = first.empty() ? 0 : static_cast<uint8_t>(first[0]);
  const size_t end = last && !last->empty() ? static_cast<uint8_t>((*last)[0]) : kSpaceCount - 1;
  for (size_t space = begin; space <= std::min(end, kSpaceCount - 1); ++space) {
    Loss one = loss;
    one.space = static_cast<Space>(space);
    if (space == begin && !first.empty()) one.after = first.substr(1);
    if (space == end && last && !last->empty()) one.until = last->substr(1);
    add(std::move(one));
  }
}

void Salvage::read_logs() {
  const auto logs = numbered(".log");
  for (const auto& [number, name] : logs) {
    if (!has_catalogue_ || number >= catalogue_.first_log) read_log_file(number, name);
  }
  check_synced(logs);
  if (lost_in_log_) losses_.push_back(*std::exchange(lost_in_log_, std::nullopt));
}

void Salvage::read_log_file(uint64_t number, const std::string& name) {
  const auto damage = [&](uint64_t begin, uint64_t end, bool at_end) {
    SyncedMark mark;
    const bool was_synced = read_synced_mark(directory_, &mark) &&
                            (number < mark.log || (number == mark.log && end <= mark.bytes));
    // A write that was never finished, and so never answered.
    if (at_end && !was_synced) return;
    if (!lost_in_log_) lost_in_log_ = Loss();
    lost_in_log_->what += fmt::format("{}{}: bytes {} to {} are damaged",
                                      lost_in_log_->what.empty() ? "" : "; ", name, begin, end - 1);
  };
  const Status status = read_log(
      path_of(name),
      {.record = [&](std::string_view record) { take_batch(name, record); }, .damage = damage});
  if (!status.ok()) losses_.push_back({.what = status.message()});
  records_.settle();
}

void Salvage::take_batch(const std::string& name, std::string_view record) {
  LoggedBatch batch;
  const bool readable = read_batch(record, &batch, [&](const LoggedChange& change) {
    std::string_view key = change.key;
    std::optional<Space> space;
    if (form_ == FileForm::kLeveldb) {
      if (key.size() < 2 || static_cast<uint8_t>(key[0]) >= kSpaceCount) return;
      space = static_cast<Space>(key[0]);
      key.remove_prefix(1);
    } else if (const auto family = catalogue_.families.find(change.family);
               family != catalogue_.families.end()) {
      space = space_of_family(family->second);
    } else if (change.family > 0 && change.family <= kSpaceCount) {
      space = kAllSpaces[change.family - 1];  // as open_rocksdb() makes them
    }
    if (space && !is_derived(*space)) {
      records_.add(*space, key, change.sequence, change.removed, change.value);
    }
  });
  if (!readable) {
    losses_.push_back({.what = name + ": a batch of changes cannot be read"});
    return;
  }
  // Batches follow each other without a gap, so that one tells what stood before it.
  if (lost_in_log_) {
    Loss loss = *std::exchange(lost_in_log_, std::nullopt);
    const bool counted = next_sequence_ && batch.first_sequence >= *next_sequence_;
    if (counted && batch.first_sequence == *next_sequence_) {
      notes_.push_back(loss.what + ", where no change stood");
    } else {
      if (counted) {
        loss.what += fmt::format(": {} changes are lost", batch.first_sequence - *next_sequence_);
      }
      loss.newest = batch.first_sequence - 1;
      losses_.push_back(std::move(loss));
    }
  }
  next_sequence_ = batch.end_sequence;
}

void Salvage::check_synced(const std::map<uint64_t, std::string>& logs) {
  SyncedMark mark;
  if (!read_synced_mark(directory_, &mark)) {
    std::error_code ignored;
    const bool is_there = fs::exists(path_of("SYNCED"), ignored);
    notes_.push_back(is_there
                         ? "SYNCED is damaged: a log that was cut off is not noticed"
                         : "there is no SYNCED, as in a checkpoint or a backup: a log that was "
                           "cut off is not noticed");
    return;
  }
  if (has_catalogue_ && mark.log < catalogue_.first_log) return;
  const auto log = logs.find(mark.log);
  if (log == logs.end()) {
    if (mark.bytes == 0) return;
    losses_.push_back({.what = fmt::format("log {:06} is missing", mark.log)});
    return;
  }
  std::error_code error;
  const uint64_t size = fs::file_size(path_of(log->second), error);
  if (!error && size >= mark.bytes) return;
  losses_.push_back({.what = fmt::format("{} has lost {} bytes at its end", log->second,
                                         mark.bytes - (error ? 0 : size))});
}

}  // namespace ingot::storage

// The LevelDB engine: the space of what is dead and of what was removed.
#include <algorithm>
#include <filesystem>
#include <thread>

#include "storage/leveldb/leveldb_cursor.h"
#include "storage/leveldb/leveldb_engine.h"
#include "storage/leveldb/leveldb_status.h"

namespace ingot::storage {
namespace {

// Than a key has where one before or behind it is looked for; more in common is rare.
constexpr size_t kMoreBytes = 64;
constexpr uint64_t kPieceTables = 8;  // that a compaction by hand is asked for at a time

}  // namespace

size_t LeveldbEngine::add_dead(GarbageKind kind, std::span<const uint64_t> ids) {
  std::lock_guard lock(reclaim_mutex_);
  return dead(kind).ids.add(ids);
}

Status LeveldbEngine::reclaim(GarbageKind kind, Reclaimed* out) {
  std::lock_guard lock(reclaim_mutex_);
  *out = {};
  Status status = delete_some(kind, &dead(kind), out);
  out->left = dead(kind).ids.size();
  out->again = out->left > 0;
  if (status.ok()) status = compact_deleted(&out->again);
  return status;
}

// In the order of the ids. One that comes in before the one at hand waits for it to end.
Status LeveldbEngine::delete_some(GarbageKind kind, Dead* dead, Reclaimed* out) {
  constexpr uint64_t kStepBytes = 16ull << 20;
  const std::span<const Space> spaces = owned_spaces(kind);
  const auto start = std::chrono::steady_clock::now();
  leveldb::ReadOptions read;
  read.verify_checksums = true;
  read.fill_cache = false;
  const ReadEpochs::Read counted(&reads_);
  // One for the step: of dead ids it sees all there ever will be.
  const std::unique_ptr<leveldb::Iterator> it(db_->NewIterator(read));
  uint64_t deleted = 0;
  uint64_t id = dead->from.empty() ? 0 : owner_of(kind, std::string_view(dead->from).substr(1));
  while (deleted < kStepBytes) {
    if (dead->from.empty()) {
      const auto run = dead->ids.next(out->gone.empty() ? 0 : id + 1);
      if (!run) break;
      id = run->first;
      dead->from = prefixed(spaces[dead->space], owned_begin(kind, id));
    }
    const std::string begin = dead->from;
    const std::string end = prefixed(spaces[dead->space], owned_end(kind, id));
    std::string next;
    uint64_t bytes = 0;
    Status status = delete_piece(it.get(), begin, end, &next, &bytes);
    if (!status.ok()) return status;
    const std::string& piece_end = next.empty() ? end : next;
    // LevelDB's estimate is of whole blocks, so of what shares its block it may be nothing, always.
    constexpr uint64_t kCompressedAtBest = 4;
    const uint64_t in_tables =
        bytes > 0 ? std::max(size_of(begin, piece_end), bytes / kCompressedAtBest) : 0;
    if (in_tables > 0) note_deleted(begin, piece_end, in_tables);
    deleted += bytes;
    pace(deleted, start);
    if (next.empty() && ++dead->space < spaces.size()) {
      next = prefixed(spaces[dead->space], owned_begin(kind, id));
    }
    dead->from = std::move(next);
    if (!dead->from.empty()) continue;
    dead->space = 0;
    out->gone.push_back(id);
  }
  std::ranges::sort(out->gone);
  dead->ids.remove(out->gone);
  return {};
}

// A batch of deletions; `*next` stays empty when they reach the end.
Status LeveldbEngine::delete_piece(leveldb::Iterator* it, const std::string& begin,
                                   const std::string& end, std::string* next, uint64_t* deleted) {
  constexpr size_t kBatchBytes = 64 * 1024;  // small: writes of commands wait behind each batch
  leveldb::WriteBatch batch;
  uint64_t records = 0;
  for (it->Seek(begin); it->Valid() && it->key().compare(end) < 0; it->Next()) {
    if (batch.ApproximateSize() >= kBatchBytes) {
      *next = it->key().ToString();
      break;
    }
    batch.Delete(it->key());
    ++records;
    *deleted += it->key().size() + it->value().size();
  }
  if (!it->status().ok()) return to_status(it->status());
  return *deleted == 0 ? Status() : commit(&batch, records, false);
}

// Joins what lies near each other: it would be compacted together.
void LeveldbEngine::note_deleted(const std::string& begin, const std::string& end, uint64_t bytes) {
  constexpr size_t kRunsMax = 4096;
  const auto near = [this](const std::string& from, const std::string& to) {
    return from[0] == to[0] && (from >= to || size_of(from, to) <= 2 * table_bytes_);
  };
  auto run = deleted_.upper_bound(begin);
  if (run != deleted_.begin() && near(std::prev(run)->second.end, begin)) {
    --run;
    run->second.end = std::max(run->second.end, end);
    run->second.bytes += bytes;
  } else {
    // The rest is left to LevelDB's own compactions.
    if (deleted_.size() == kRunsMax) return;
    run = deleted_.insert({begin, {.end = end, .bytes = bytes}}).first;
  }
  const auto next = std::next(run);
  if (next == deleted_.end() || !near(run->second.end, next->first)) return;
  run->second.end = std::max(run->second.end, next->second.end);
  run->second.bytes += next->second.bytes;
  deleted_.erase(next);
}

// LevelDB writes a range once for each level that it passes, and with it the tables at both ends:
// half of all that must be dead.
Status LeveldbEngine::compact_deleted(bool* again) {
  for (auto run = deleted_.begin(); run != deleted_.end(); ++run) {
    const uint64_t size = size_of(run->first, run->second.end);
    if (2 * run->second.bytes < size + 2 * table_bytes_) continue;
    const std::string first_end = end_of_piece(run->first, kPieceTables * table_bytes_);
    if (!has_room_to_compact(run->first, std::min(first_end, run->second.end))) return {};
    *again = true;
    const std::string begin = run->first;
    const Deleted deleted = run->second;
    deleted_.erase(run);
    const uint64_t alive = size - std::min(size, deleted.bytes);
    Status status;
    uint64_t left = size;
    std::string done = begin;
    // Again where a compaction of LevelDB's own has taken much of it to a deeper level meanwhile.
    for (int tries = 0; tries < 2 && status.ok() && left > alive + (size - alive) / 8; ++tries) {
      status = compact_pieces(begin, deleted.end, &done);
      left = size_of(begin, deleted.end);
      reclaim_rewritten_ += left;
      if (done < deleted.end) break;
    }
    reclaim_freed_ += size - std::min(size, left);
    // So much that it is tried again.
    if (done < deleted.end) {
      note_deleted(done, deleted.end, size_of(done, deleted.end) / 2 + table_bytes_);
    }
    return status;
  }
  return {};
}

// In one piece LevelDB would rewrite most of what lies between at once, before it frees any of it.
// `*done` is how far it came before there was too little room.
Status LeveldbEngine::compact_pieces(const std::string& begin, const std::string& end,
                                     std::string* done) {
  *done = begin;
  while (*done < end) {
    std::string piece_end = std::min(end_of_piece(*done, kPieceTables * table_bytes_), end);
    if (!has_room_to_compact(*done, piece_end)) break;
    if (Status status = compact_run(*done, piece_end); !status.ok()) return status;
    *done = std::move(piece_end);
  }
  return {};
}

// Whatever it is.
bool LeveldbEngine::has_room_to_compact() const {
  return disk_->free_bytes(path_) >= room_bytes(compaction_bytes());
}

// What is between these. With less free than the largest compaction may take, one of what is dead
// must still begin: nothing else gives space back then.
bool LeveldbEngine::has_room_to_compact(const std::string& begin, const std::string& end) {
  if (has_room_to_compact()) return true;
  const uint64_t free = disk_->free_bytes(path_);
  if (free < room_bytes(upper_bytes())) return false;
  // LevelDB takes with it what lies around.
  constexpr uint64_t kTablesAround = kCompactedTablesMax / 2;
  return is_mostly_dead(begin_of_piece(begin, kTablesAround * table_bytes_),
                        end_of_piece(end, 2 * kTablesAround * table_bytes_), free - room_bytes(0));
}

// Whether no more than so much would be written of what is between these. That reads it, until
// there is too much that lives; of what is dead the removals may stay.
bool LeveldbEngine::is_mostly_dead(const std::string& begin, const std::string& end,
                                   uint64_t bytes_max) {
  constexpr uint64_t kRemovalsPart = 4;  // of it, at most, but where values are next to nothing
  const uint64_t size = size_of(begin, end);
  const auto written = [size](uint64_t alive) { return alive + (size - alive) / kRemovalsPart; };
  leveldb::ReadOptions read;
  read.verify_checksums = true;
  read.fill_cache = false;
  const ReadEpochs::Read counted(&reads_);
  const std::unique_ptr<leveldb::Iterator> it(db_->NewIterator(read));
  uint64_t alive = 0;
  for (it->Seek(begin); it->Valid() && it->key().compare(end) < 0; it->Next()) {
    if (written(alive) > bytes_max) return false;
    // Before it is compressed; in tables it cannot be more than all that is there.
    alive = std::min(size, alive + it->key().size() + it->value().size());
  }
  return it->status().ok() && written(alive) <= bytes_max;
}

void LeveldbEngine::look_at_space() {
  if (!garbage_.is_due()) return;
  const bool is_short = env_.is_starving() || !has_room_to_compact();
  if (!is_short || health() == Health::kUndecided) return garbage_.space_is_there();
  garbage_.remove_some(db_.get());
}

// Sleeps until deleting `bytes` since `begin` is within the rate.
void LeveldbEngine::pace(uint64_t bytes, std::chrono::steady_clock::time_point begin) const {
  const uint64_t rate = rate_;
  if (rate == 0) return;
  const std::chrono::duration<double> due(static_cast<double>(bytes) / static_cast<double>(rate));
  std::this_thread::sleep_until(
      begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(due));
}

// LevelDB compacts by itself only what grows. This writes the memtable with the removals out, too,
// and costs next to nothing where only the deepest level has tables. What is known to be dead
// first. Passes over what there is no room for.
Status LeveldbEngine::make_room() {
  std::lock_guard lock(reclaim_mutex_);
  bool done = false;
  if (Status status = compact_deleted(&done); done || !status.ok()) return status;
  const std::string begin = room_from_.empty() ? prefixed(kAllSpaces.front(), {}) : room_from_;
  std::string end = end_of_piece(begin, kPieceTables * table_bytes_);
  if (has_room_to_compact(begin, end)) {
    if (Status status = compact_run(begin, end); !status.ok()) return status;
  }
  room_from_ = end < end_of(kAllSpaces.back()) ? std::move(end) : std::string();
  makes_room_ = !room_from_.empty();
  return {};
}

// LevelDB cannot be stopped in the middle of a range.
Status LeveldbEngine::compact_all(std::atomic<bool>& stop) {
  const std::string last = end_of(kAllSpaces.back());
  for (std::string begin = prefixed(kAllSpaces.front(), {}); begin < last;) {
    if (stop) return {Status::Code::kBusy, "the server stops"};
    std::lock_guard lock(reclaim_mutex_);
    std::string end = end_of_piece(begin, kPieceTables * table_bytes_);
    if (Status status = compact_run(begin, end); !status.ok()) return status;
    begin = std::move(end);
  }
  return {};
}

// So that between the two there is at most so much in tables, and at least half, if there is. Found
// byte by byte: keys alone, without reading what lies between.
std::string LeveldbEngine::end_of_piece(const std::string& begin, uint64_t bytes) const {
  std::string end = end_of(kAllSpaces.back());
  if (size_of(begin, end) <= bytes) return end;
  end.clear();
  while (end.size() < begin.size() + kMoreBytes && size_of(begin, end) < bytes / 2) {
    int fits = 0;
    for (int step = 128; step > 0; step /= 2) {
      end.push_back(static_cast<char>(fits + step));
      if (size_of(begin, end) <= bytes) fits += step;
      end.pop_back();
    }
    end.push_back(static_cast<char>(fits));
  }
  return end;
}

// So that between the two there is at least so much in tables, if there is, and at most twice that.
std::string LeveldbEngine::begin_of_piece(const std::string& end, uint64_t bytes) const {
  std::string begin;
  while (begin.size() < end.size() + kMoreBytes && size_of(begin, end) > 2 * bytes) {
    int fits = 0;
    for (int step = 128; step > 0; step /= 2) {
      begin.push_back(static_cast<char>(fits + step));
      if (size_of(begin, end) >= bytes) fits += step;
      begin.pop_back();
    }
    begin.push_back(static_cast<char>(fits));
  }
  return begin;
}

}  // namespace ingot::storage

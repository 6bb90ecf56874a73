// The RocksDB engine: what it does when a disk was full or failed, and how it goes on.
#include <chrono>
#include <filesystem>
#include <future>
#include <system_error>
#include <thread>

#include "storage/durable_file.h"
#include "storage/rocksdb/rocksdb_engine.h"
#include "storage/rocksdb/rocksdb_status.h"

namespace ingot::storage {
namespace {

constexpr uint64_t kRecoveryBytes = 4 << 20;  // that one needs besides what it flushes
// A flush that begins later than this after a recovery did is a part of it.
constexpr std::chrono::milliseconds kRecoveryBegins{100};
constexpr std::chrono::seconds kFlushWait{5};  // as long as a recovery may wait for one to begin

}  // namespace

// RocksDB 7.8 never forgets that it was stopped: from its first recovery on, Flush() puts memtables
// aside and returns without a wait.
Status RocksdbEngine::wait_until_flushed() const {
  constexpr std::chrono::milliseconds kPoll{2};
  for (rocksdb::ColumnFamilyHandle* space : handles_) {
    uint64_t memtables = 0;
    while (db_->GetIntProperty(space, rocksdb::DB::Properties::kNumImmutableMemTable, &memtables) &&
           memtables > 0) {
      if (stopped_) return stopped();
      std::this_thread::sleep_for(kPoll);
    }
  }
  return {};
}

Status RocksdbEngine::stopped() const {
  if (health() == Health::kUndecided) return trouble();
  return {Status::Code::kNoSpace, "RocksDB has not recovered from a full or failing disk"};
}

Status RocksdbEngine::stuck() {
  return {Status::Code::kIo, "RocksDB cannot go on behind a torn log before a restart"};
}

// It looks at its errors when something that runs in the background has ended; nothing does now.
// This signals the same, and ends only manual compactions, which could not go on either.
void RocksdbEngine::wake_flush_waiters() {
  if (db_ == nullptr) return;
  db_->DisableManualCompaction();
  db_->EnableManualCompaction();
}

// What fails in the middle of a recovery RocksDB never forgets. Free space says little where there
// are quotas.
Status RocksdbEngine::probe_room_to_recover() const {
  std::error_code error;
  const auto space = std::filesystem::space(path_, error);
  if (error || space.available < shared_.memtables->memory_usage() + kRecoveryBytes) {
    return stopped();
  }
  const std::string probe = path_ + "/ROOM";
  const Status probed = write_durably(probe, std::string(1 << 20, '-'));
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  if (!probed.ok()) return {Status::Code::kNoSpace, probed.message()};
  return {};
}

// Resume() would wait for compactions to end, which RocksDB tries again and again where they find
// no room: so it is called only while RocksDB has an error, which keeps them from that.
Status RocksdbEngine::do_try_resume() {
  if (!stopped_) return ledger_.probe_room();
  if (Status room = probe_room_to_recover(); !room.ok()) {
    room_.is_ample = false;
    return room;
  }
  const rocksdb::Status status = has_error_ ? resume() : rocksdb::Status();
  // RocksDB looks for space by itself every few seconds and admits no second attempt meanwhile. Its
  // own may wait for a flush, which is not lost then.
  room_.is_ample = status.IsBusy();
  if (status.IsBusy()) {
    gate_->open();
    return {Status::Code::kNoSpace, "RocksDB is recovering from a full disk"};
  }
  status.ok() ? gate_->open() : gate_->close();
  if (!status.ok()) return to_stop(status);
  if (ledger_.newest_is_torn()) return stuck();
  if (Status room = ledger_.probe_room(); !room.ok()) return room;
  // A log that was torn is complete, and marked as such before anything is written behind it.
  if (Status synced = ledger_.sync(); !synced.ok()) return synced;
  if (!never_stops_writes_.exchange(true)) set_level0_triggers();
  stopped_ = false;
  return {};
}

// RocksDB begins a new log only if it has anything to flush, and aborts on one that an append
// failed on.
bool RocksdbEngine::is_stuck_behind_log() const {
  return ledger_.newest_is_torn() &&
         property_of_all_spaces(rocksdb::DB::Properties::kNumEntriesActiveMemTable) == 0;
}

// RocksDB has been seen to wait for a flush that nobody would ever begin.
rocksdb::Status RocksdbEngine::resume() {
  using Property = rocksdb::DB::Properties;
  const std::lock_guard lock(files_mutex_);
  std::future<rocksdb::Status> resumed;
  std::promise<void> called;
  try {
    resumed = std::async(std::launch::async, [this, &called] {
      called.set_value();
      return db_->Resume();
    });
  } catch (const std::system_error& error) {
    return rocksdb::Status::Busy("no thread for it", error.what());  // at the next attempt, maybe
  }
  called.get_future().wait();
  auto worked_at = std::chrono::steady_clock::now();
  while (resumed.wait_for(kRecoveryBegins) != std::future_status::ready) {
    gate_->open();
    const auto now = std::chrono::steady_clock::now();
    const bool works = property(Property::kNumRunningFlushes) > 0 ||
                       property(Property::kNumRunningCompactions) > 0 || rewriting_;
    if (works) worked_at = now;
    if (now - worked_at > kFlushWait || interrupted_) rocksdb::CancelAllBackgroundWork(db_.get());
  }
  rocksdb::Status status = resumed.get();
  if (status.ok()) {
    keeps_files_ = 0;
    ++recoveries_;
  }
  return status;
}

// RocksDB keeps all files while its manifest may name others than it goes by: from a failed write
// of the manifest until one succeeds. It does not where options are set, files are deleted by range
// or compacted by name: behind a failure the manifest would name files that are gone, and nothing
// could be opened any more. And Resume() ends the process unless they are kept.
rocksdb::Status RocksdbEngine::keep_files() {
  return db_->DisableFileDeletions();
}

// Resume() lets files go whoever keeps them: nothing is given back that it has given back already.
void RocksdbEngine::let_files_go(const rocksdb::Status& changed) {
  if (changed.ok() || is_conflict(changed)) {
    log_failure("RocksDB keeps files", db_->EnableFileDeletions(false));
  } else {
    ++keeps_files_;
  }
}

}  // namespace ingot::storage

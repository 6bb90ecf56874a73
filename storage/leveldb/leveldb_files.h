// The files that LevelDB writes. Its logs report to a LogLedger, and end at their last whole record
// when one is torn. Its tables wait for space when the disk is full: LevelDB gives up for good when
// its background work fails.
#pragma once

#include <leveldb/env.h>
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "storage/log_ledger.h"
#include "storage/status.h"

namespace ingot::storage {

// What the files ask of the kernel, most of it as that answers: -1 and errno. Tests put a failing
// disk in its place. Any thread.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual int create(const std::string& path);  // a descriptor
  virtual ssize_t write(int fd, const char* bytes, size_t count);
  virtual int sync(int fd);
  virtual int allocate(int fd, off_t offset, off_t bytes);
  virtual Status sync_directory(const std::string& path);
  virtual uint64_t free_bytes(const std::string& path);  // of its filesystem, for us
  static Disk* of_machine();
};

// Any thread. Not destroyed before the files are.
class LeveldbEnv : public leveldb::EnvWrapper {
 public:
  // `on_hunger` is called on LevelDB's thread when a table begins to wait for space. None takes the
  // last `reserve_bytes`, but while the database is opened: what a compaction has written by half
  // goes with the next opening, which needs some room itself.
  LeveldbEnv(Disk* disk, LogLedger* ledger, uint64_t reserve_bytes,
             std::function<void()> on_hunger);
  ~LeveldbEnv() override;

  // From now on tables wait; until then, a full disk fails the opening.
  void set_patient(bool patient);
  bool is_starving() const { return starving_; }
  // While the memtable before the newest is written out, whose log goes behind that: waits for it,
  // some seconds at most. False when a table waits for space, so that it may take for ever.
  bool wait_for_flush();
  bool is_flushing() const;  // there is such a memtable

  // LevelDB's own take whatever fails for a file that is not there: it would make a new database
  // and remove the old one's files.
  bool FileExists(const std::string& path) override;
  leveldb::Status GetChildren(const std::string& path, std::vector<std::string>* names) override;
  // LevelDB's own maps tables into memory, where a disk that cannot read ends the process.
  leveldb::Status NewRandomAccessFile(const std::string& path,
                                      leveldb::RandomAccessFile** file) override;
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** file) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  leveldb::Status RemoveFile(const std::string& path) override;
  void Schedule(void (*work)(void*), void* argument) override;

  // The numbers of the tables that LevelDB's background work has made since it began its present
  // step: no version may have them yet.
  std::set<uint64_t> tables_of_work() const;

 private:
  friend class TableFile;
  friend class LeveldbLog;
  struct Log;
  // Sleeps a little, and answers whether to try again.
  bool wait_for_space();

  Disk* const disk_;
  LogLedger* const ledger_;
  const uint64_t reserve_bytes_;
  const std::function<void()> on_hunger_;
  std::atomic<uint64_t> reserved_bytes_ = 0;  // as long as tables wait
  std::atomic<bool> starving_ = false;
  std::atomic<bool> keeps_manifests_ = false;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool patient_ = false;  // guarded by mutex_
  // Guarded by mutex_: LevelDB closes a log before it is synced; ours stay open until removed.
  std::map<std::string, std::shared_ptr<Log>> logs_;
  std::set<uint64_t> tables_of_work_;  // guarded by mutex_
};

}  // namespace ingot::storage

// Holds back the flushes that RocksDB has scheduled while it is stopped. One that begins then
// returns at once and leaves its memtable in RocksDB's queue with nobody to flush it: a recovery
// waits for that memtable for ever (RocksDB 7.8).
//
// Any thread.
#pragma once

#include <rocksdb/env.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace ingot::storage {

class FlushGate {
 public:
  // `wake` is called from time to time while a flush is held back: whoever waits for that flush
  // must look again at what stopped RocksDB. Not behind the last flush of the database.
  explicit FlushGate(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Around a write, which may fail behind the flush that it scheduled.
  void begin_write();
  void end_write();

  // RocksDB is about to be stopped: those that have passed begin before this returns, unless that
  // takes them a second.
  void close();
  void open();  // it recovers, or is closed for good

  // For a flush: returns when it may begin. Waits only briefly for a write, which may itself wait
  // for this flush.
  void pass();
  // By the thread that passed: the flush has begun, or will not. May be called again.
  void has_begun();

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  uint64_t begun_ = 0;  // writes
  uint64_t ended_ = 0;
  bool closed_ = false;
  int passing_ = 0;  // flushes
};

// Whether this thread flushes memtables. The priority of a file does not tell: while writes are
// slowed down a flush and a compaction have the same.
bool on_flush_thread();
// Whether it runs compactions, but those that their callers wait for on threads of their own.
bool on_compaction_thread();

// Everything is done by `target`; background jobs of the pool for flushes pass the gate before.
std::unique_ptr<rocksdb::Env> make_gated_env(std::unique_ptr<rocksdb::Env> target,
                                             std::shared_ptr<FlushGate> gate);

}  // namespace ingot::storage

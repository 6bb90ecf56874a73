// A collection that is written straight into the engine, under an id that no key names yet, by
// somebody who is not the writer. A command links it to a key later.
//
// Its id is garbage from its first byte on, by a record in the garbage space; the commit that links
// it takes that record away. So a crash at any time leaves no bytes that nobody owns.
//
// Threads: one at a time, then the writer for link(); the destructor on any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/data/services.h"
#include "src/types/keyspace.h"
#include "storage/engine.h"

namespace ingot::data {

class BuiltCollection {
 public:
  explicit BuiltCollection(Services& services);
  // Hands the id to the collector unless a commit has linked it. Not before that commit is over.
  ~BuiltCollection();
  BuiltCollection(const BuiltCollection&) = delete;
  BuiltCollection& operator=(const BuiltCollection&) = delete;

  // Writes an element's record, or removes it; `element` is its key behind the id. Batches: an
  // error may show only at a later call, and reads see it after flush().
  void put(storage::Space space, std::string_view element, std::string_view record);
  void remove(storage::Space space, std::string_view element);
  // What it takes is for those who delete where space is short: it fails there, not its command
  // when all of it is written.
  void leave_room() { leaves_room_ = true; }
  void flush();                                              // whatever is held back
  const storage::Status& status() const { return status_; }  // the first failure, latched

  storage::CollectionId id() const { return id_; }
  // In the writer: the commit of this group makes it somebody's. The caller stores a record that
  // names the id. False when reading failed, which is latched.
  [[nodiscard]] bool link(types::KeyWriter& keys);

 private:
  void add_to_batch(const std::function<void(storage::Batch&)>& change);
  void write_batch();

  Services& services_;
  storage::Status status_;
  const storage::CollectionId id_;
  const bool syncs_;
  std::unique_ptr<storage::Batch> batch_;
  size_t batch_records_ = 0;
  size_t unsynced_bytes_ = 0;
  bool leaves_room_ = false;
  bool marked_ = false;  // the garbage record is in the batch or written
  bool linked_ = false;  // by a run; whether it was committed only the engine knows
};

}  // namespace ingot::data

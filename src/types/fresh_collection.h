// A collection that is written straight into the engine, under an id that no key names yet, by
// somebody who is not the writer. A command links it to a key later.
//
// Its id is garbage from its first byte on, by a record in the garbage space; the commit that links
// it takes that record away. So a crash at any time leaves no bytes that nobody owns.
//
// Threads: one at a time, then the writer for link(); the destructor on any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "src/exec/services.h"
#include "src/types/keyspace.h"
#include "storage/engine.h"

namespace ingot::types {

class FreshCollection {
 public:
  explicit FreshCollection(exec::Services& services);
  // Hands the id to the collector unless a commit has linked it. Not before that commit is over.
  ~FreshCollection();
  FreshCollection(const FreshCollection&) = delete;
  FreshCollection& operator=(const FreshCollection&) = delete;

  // Writes an element's record; `element` is its key behind the id, written once. Batches: an error
  // may show only at a later call.
  void put(storage::Space space, std::string_view element, std::string_view record);
  // Of a long string.
  void put_chunk(uint32_t number, std::string_view bytes);
  void flush();  // whatever put() holds back
  void fail(storage::Status status) { status_ = std::move(status); }
  const storage::Status& status() const { return status_; }  // the first failure, latched

  storage::CollectionId id() const { return id_; }
  // In the writer: the commit of this group makes it somebody's. False when the group has
  // linked it already. The caller stores a record that names the id.
  [[nodiscard]] bool link(KeyWriter& keys);

 private:
  void write_batch();

  exec::Services& services_;
  const storage::CollectionId id_;
  const storage::Durability durability_;
  std::unique_ptr<storage::Batch> batch_;
  std::string record_;
  storage::Status status_;
  bool marked_ = false;  // the garbage record is in the batch or written
  bool linked_ = false;  // by a run; whether it was committed only the engine knows
};

}  // namespace ingot::types

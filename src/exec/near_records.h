// What the writer is about to look up, brought near the processor: the records and elements that
// the next commands name are fetched from memory all at once, where the commands would wait for
// them one after the other. Only of what the cache of hot records has; nothing depends on it.
//
// Threads: one at a time.
#pragma once

#include <string>
#include <vector>

#include "src/contract/table.h"
#include "src/exec/services.h"
#include "src/exec/write_job.h"
#include "storage/hashed_key.h"
#include "storage/overlay.h"

namespace ingot::exec {

class NearRecords {
 public:
  explicit NearRecords(Services& services) : services_(services) {}
  // Takes in what the job's units name, at least of the first job, and not all of a very long one.
  // False: nothing, there was enough for once.
  bool add(const WriteJob& job);
  // All that was taken in since the last time; the jobs must still be there.
  void fetch(storage::Overlay* overlay);

 private:
  struct Name {
    storage::Space space;
    size_t begin, end;  // in bytes_
  };

  struct Owner {
    const Unit* unit;
    storage::KeyspaceId keyspace;
  };

  void add_members(const Unit& unit, storage::CollectionId collection);
  void add(storage::Space space, std::string_view key);
  void fetch_names(storage::Overlay* overlay);

  Services& services_;
  std::string bytes_;
  std::vector<Name> names_;
  std::vector<storage::HashedKey> hashed_;
  std::vector<storage::HashedKey> missing_;  // of them, in the cache
  std::vector<contract::KeyAt> keys_;
  std::vector<Owner> owners_;
};

}  // namespace ingot::exec

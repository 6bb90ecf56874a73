// Keyspaces that somebody fills beside the writer, before a database maps to them. They are garbage
// from their first byte on, by their records in the garbage space; but the collector leaves them
// alone, and what expires in them meanwhile is removed like other keys.
//
// Any thread.
#pragma once

#include <mutex>
#include <set>

#include "storage/codec.h"
#include "storage/status.h"

namespace ingot::types {

class FreshIds;

class FillingKeyspaces {
 public:
  explicit FillingKeyspaces(FreshIds& ids) : ids_(ids) {}

  // 0, with the reason in `*failure`, when no id can be had now.
  storage::KeyspaceId begin(storage::Status* failure);
  // A commit has mapped a database to it and removed its garbage records, or nobody ever will.
  void end(storage::KeyspaceId keyspace);
  bool contains(storage::KeyspaceId keyspace) const;

  // Those of now; what begins later is not before the horizon.
  struct Snapshot {
    std::set<storage::KeyspaceId> keyspaces;
    storage::KeyspaceId horizon = 0;  // 0: `failure`
    storage::Status failure;
    bool covers(storage::KeyspaceId keyspace) const {
      const storage::KeyspaceId id = keyspace & ~storage::kMarkersBit;
      return id >= horizon || keyspaces.contains(id);
    }
  };
  Snapshot snapshot() const;

 private:
  FreshIds& ids_;
  mutable std::mutex mutex_;
  std::set<storage::KeyspaceId> keyspaces_;  // by mutex_
};

}  // namespace ingot::types

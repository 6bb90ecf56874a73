// Which keyspaces are being filled, and ids for more of them.
#include "src/types/filling_keyspaces.h"

#include "src/types/keyspace.h"

namespace ingot::types {

storage::KeyspaceId FillingKeyspaces::begin(storage::Status* failure) {
  std::lock_guard lock(mutex_);
  const auto id = static_cast<storage::KeyspaceId>(ids_.next(failure));
  if (id != 0) keyspaces_.insert(id);
  return id;
}

void FillingKeyspaces::end(storage::KeyspaceId keyspace) {
  std::lock_guard lock(mutex_);
  keyspaces_.erase(keyspace);
}

bool FillingKeyspaces::contains(storage::KeyspaceId keyspace) const {
  std::lock_guard lock(mutex_);
  return keyspaces_.contains(keyspace);
}

FillingKeyspaces::Snapshot FillingKeyspaces::snapshot() const {
  std::lock_guard lock(mutex_);
  Snapshot snapshot{.keyspaces = keyspaces_, .failure = {}};
  snapshot.horizon = static_cast<storage::KeyspaceId>(ids_.next(&snapshot.failure));
  return snapshot;
}

}  // namespace ingot::types

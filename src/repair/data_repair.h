// Makes a new, sound data directory of what was salvaged of a damaged one: every key whose record
// is there, with the elements that are there, and all that follows from these (counts, expiry
// index, orders, references). Tells what was lost.
//
// One thread. Memory: that of some keyspaces' counts and of one value's groups; what does not fit
// stands in the scratch engine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "src/repair/collection_repair.h"
#include "src/types/keyspace.h"
#include "storage/engine.h"
#include "storage/salvage/salvage.h"

namespace ingot::repair {

class DataRepair {
 public:
  // `target` is an empty engine. `lost` is called with a sentence for each thing that was.
  DataRepair(storage::Salvage& salvage, storage::Engine& target,
             std::function<void(const std::string&)> lost);

  // kInvalid for data of another format version.
  storage::Status run();

  uint64_t keys() const { return keys_; }  // that were written

 private:
  storage::Status read_system();
  void read_garbage();
  void find_databases();
  void tell_losses();
  void tell_range(const storage::Loss& loss);
  void find_owners();
  bool is_owner(storage::CollectionId id, uint64_t sequence);
  void copy_keyspace(storage::KeyspaceId keyspace);
  void copy_key(storage::KeyspaceId keyspace, std::string_view key, uint64_t sequence,
                std::string_view value);
  bool make_value(const std::string& name, const types::Record& record, types::BuiltValue* made);
  void tell_lost_keys();
  void write_system();

  bool is_readable(const types::Record& record);
  std::string name_of(storage::KeyspaceId keyspace, std::string_view user_key) const;
  std::string name_of(std::string_view meta_key) const;
  void put(storage::Space space, std::string_view key, std::string_view value);
  void commit();
  void note(storage::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  storage::Salvage& salvage_;
  storage::MergedRecords& records_;
  storage::Engine& target_;
  const std::function<void(const std::string&)> lost_;
  std::unique_ptr<storage::Batch> batch_;
  storage::Status status_;

  std::map<uint32_t, storage::KeyspaceId> databases_;    // as they were changed
  std::map<storage::KeyspaceId, uint32_t> database_of_;  // of all keyspaces with keys
  std::set<storage::KeyspaceId> dead_;
  std::map<storage::KeyspaceId, storage::KeyCounts> counts_;
  storage::KeyspaceId next_keyspace_ = storage::kFirstFreeKeyspace;
  storage::CollectionId next_id_ = 1;
  uint64_t keys_ = 0;
};

}  // namespace ingot::repair

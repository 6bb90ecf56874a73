// Fresh keyspaces that are filled past the writer, in batches of the engine. They are garbage from
// their first byte on (types/filling_keyspaces.h), until the writer's commit of replace().
//
// One thread at a time; replace() in the writer.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/data/services.h"
#include "src/types/built_value.h"
#include "src/types/keyspace.h"
#include "storage/engine.h"
#include "storage/overlay.h"

namespace ingot::data {

class Filling {
 public:
  Filling(Services& services, int databases);
  // Looks into the engine whether what was filled has become the data: blocks.
  ~Filling();
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;

  // Where keys are stored, under the numbers of the databases, that have none yet. Before the first
  // of a database: open().
  types::KeyWriter& keys() { return *keys_; }
  void open(int db);

  // --- one value that comes in pieces; between its begin and its end others are not stored

  void begin_value();
  // Its elements, under an id of its own.
  void put(storage::Space space, std::string_view element, std::string_view record);
  // The value's record, to be stored.
  storage::Metadata record_of(const types::BuiltValue& value) const;
  void end_value();  // after its record was stored

  // To be called again and again: writes what there is when it has become much. No cursor of the
  // keys outlives it.
  void write_if_much();
  // Writes what there is, so that it can be read. No cursor of the keys outlives it.
  void write();
  // Writes and syncs all. What was filled is complete.
  void finish();
  const storage::Status& status() const { return status_; }  // the first failure, latched
  void fail(const storage::Status& status) {
    if (status_.ok()) status_ = status;
  }

  // In the writer, after finish(): all databases are what was filled.
  void replace(types::KeyWriter& keys) const;

 private:
  // Ids of collections that the collector leaves alone while their value is open.
  class Ids : public types::FreshIds {
   public:
    explicit Ids(Filling& filling) : filling_(filling) {}
    uint64_t next(storage::Status* failure) override;

   private:
    Filling& filling_;
  };
  void look_at_disk();
  void mark_open_collection();

  Services& services_;
  storage::Status status_;
  storage::Overlay overlay_;
  types::KeyspaceState state_;
  types::Effects effects_;
  Ids ids_;
  std::unique_ptr<types::KeyWriter> keys_;
  std::unique_ptr<storage::Batch> batch_;
  std::vector<bool> is_open_;  // by database
  size_t until_look_ = 0;      // bytes to write before the next look_at_disk()

  bool value_open_ = false;
  storage::CollectionId open_id_ = 0;   // of the open value; 0: it has none so far
  bool open_marked_ = false;            // its garbage record has been written
  storage::CollectionId ended_id_ = 0;  // of the last value, until its end has been written
};

}  // namespace ingot::data

// Verifies that all that an engine holds is sound and fits together, as docs/format.md draws it:
// every record can be read (so every block's checksum is right), every value can be walked and has
// as many elements as it says, DBSIZE's counts are those of the keys, every element belongs to a
// key or is garbage, every key that expires is in the expiry index, and the orders of sorted sets,
// lists and hashes agree with their elements.
//
// One thread; nobody else may use the engine. Memory: some 40 bytes for each large collection.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/types/keyspace.h"
#include "src/types/list_value.h"
#include "src/types/string_value.h"
#include "storage/engine.h"
#include "storage/reader.h"

namespace ingot::check {

// Why this data is none that DataCheck knows; empty when it is.
std::string version_problem(storage::Engine& engine);

class DataCheck {
 public:
  // `problem` is called with a sentence for each.
  DataCheck(storage::Engine& engine, std::function<void(const std::string&)> problem);

  void run();

  // What was seen.
  uint64_t keys() const { return keys_; }
  uint64_t elements() const { return elements_; }
  uint64_t garbage() const { return garbage_.size(); }

 private:
  struct Owner {
    storage::ValueType type;
    uint64_t count;          // as the key's record says
    bool alive;              // its keyspace is
    uint64_t found = 0;      // in the data space
    uint64_t ordered = 0;    // in the leaves of its order
    bool misplaced = false;  // some of those stand in a leaf that is not theirs
    types::ListBounds list;  // of a list
    types::StringChunks string;
  };
  struct Keyspace {
    bool has_database = false;
    bool dead = false;
    storage::KeyCounts noted, found;
    uint64_t markers = 0;
  };
  using Visit = std::function<void(std::string_view key, std::string_view value)>;

  void walk(storage::Space space, const Visit& visit);
  void read_system();
  void read_garbage();
  void check_key(std::string_view key, std::string_view value);
  void check_marker(std::string_view key, std::string_view value);
  void check_expiry(const std::string& name, std::string_view key, const types::Record& record);
  void check_value(const std::string& name, const types::Record& record);
  void check_sorted_set(const types::Record& record);
  void check_list(const types::Record& record);
  void check_element(std::string_view key, std::string_view value);
  void check_list_record(std::string_view key, std::string_view value, Owner& owner);
  void check_order(std::string_view key, std::string_view record = {});
  void check_leaf(Owner& owner, std::string_view bound, std::string_view record);
  void check_counts();
  void say(const std::string& text) { problem_(text); }

  storage::Engine& engine_;
  storage::EngineReader data_;
  const std::function<void(const std::string&)> problem_;
  boost::unordered_flat_map<storage::KeyspaceId, Keyspace> keyspaces_;
  boost::unordered_flat_map<storage::CollectionId, Owner> owners_;
  boost::unordered_flat_map<storage::CollectionId, bool> garbage_;
  storage::CollectionId first_free_id_ = 1;
  storage::CollectionId orphan_ = 0;   // the last that was told of
  storage::CollectionId ordered_ = 0;  // the last of which a leaf was read, and the leaf's bound
  std::string last_bound_;
  uint64_t keys_ = 0;
  uint64_t elements_ = 0;
};

}  // namespace ingot::check

// One table file of either engine, read block by block although some of it is damaged. Without its
// index (or the footer, which tells where that is) the blocks are found by their checksums, one
// behind the other. One thread; memory: the keys of the index, and a block.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/salvage/damaged_file.h"
#include "storage/salvage/engine_files.h"
#include "storage/salvage/table_blocks.h"

namespace ingot::storage {

struct TableEvents {
  // In the order of keys, the latest version of a key first.
  std::function<void(const VersionedKey& key, std::string_view value)> record;
  // Bytes [begin, end) are damaged, or the file ends where there should be more (begin == end);
  // what stood there has keys behind `after` ("": behind none), none behind `until` (nothing: that
  // is not known).
  std::function<void(uint64_t begin, uint64_t end, std::string_view after,
                     const std::optional<std::string>& until)>
      damage;
  // What is damaged can be done without.
  std::function<void(std::string_view what)> harmless;
};

class SalvagedTable {
 public:
  SalvagedTable(const std::string& path, FileForm form);

  const Status& status() const { return file_.status(); }  // of opening it
  // RocksDB's column family; empty when its properties are damaged.
  const std::string& family() const { return family_; }
  // Its footer and its index are sound: an engine that is killed while it writes one leaves
  // neither.
  bool has_index() const { return is_indexed_; }
  void walk(const TableEvents& events);

 private:
  struct Block {
    std::string last;  // no key of it stands behind this; empty: not known
    BlockHandle handle;
  };

  void read_footer();
  bool read_index(BlockHandle index, bool is_two_level);
  void read_properties(std::string_view block);
  bool search_blocks();  // whether it found all
  bool is_data(std::string_view block) const;

  const FileForm form_;
  const DamagedFile file_;
  std::vector<Block> blocks_;
  std::string family_;
  uint64_t data_bytes_ = 0;  // as the properties tell; 0: they do not
  bool index_has_versions_ = false;
  bool is_indexed_ = false;
  bool is_complete_ = false;
  uint64_t searched_until_ = 0;  // without an index: nothing was found from here on
};

}  // namespace ingot::storage

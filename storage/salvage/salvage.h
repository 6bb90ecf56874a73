// Everything that can still be read of a data directory, of whichever engine: the tables and logs
// that its manifest names, or all that there are when it is damaged. The directory itself is only
// read.
//
// One thread. The directory is locked as its engine locks it, so no server can start on it
// meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/log_ledger.h"
#include "storage/salvage/engine_files.h"
#include "storage/salvage/merged_records.h"
#include "storage/spaces.h"

namespace ingot::storage {

// Something that could not be read.
struct Loss {
  std::string what;            // the file, and what is wrong with it
  std::optional<Space> space;  // nothing: any
  // Keys behind `after`, up to `until` (nothing: to the end).
  std::string after;
  std::optional<std::string> until;
  uint64_t newest = UINT64_MAX;  // nothing younger was lost; compactions make it 0 where all is old
  bool is_narrow = false;        // some blocks, with few keys
  bool brings_back = false;      // nothing was lost, but something that was removed may be there

  // Whether a record of that space and key, a younger one than that which is there, may be lost.
  bool concerns(Space in, std::string_view key, uint64_t sequence) const {
    return (!space || *space == in) && key > after && (!until || key <= *until) &&
           sequence <= newest;
  }
  // The same of any key that begins so.
  bool touches(Space in, std::string_view prefix) const;
};

class Salvage {
 public:
  // `scratch` is a directory to be made, for what is gathered; whoever gave it removes it.
  Salvage(std::string directory, const std::string& scratch);
  ~Salvage();
  Salvage(const Salvage&) = delete;
  Salvage& operator=(const Salvage&) = delete;

  // kBusy while a server has the directory, kInvalid when it is none of Ingot's.
  Status gather();

  // After that:
  std::string_view engine() const;
  MergedRecords& records() { return records_; }  // but for kOrder and kExpiry, which follow
  const std::vector<Loss>& losses() const { return losses_; }
  // What was damaged, and cost nothing.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Status lock();
  Status find_engine();
  Status read_catalogue();
  bool lost_end() const;
  void read_tables();
  void read_table(uint64_t number, const std::string& name);
  void read_logs();
  void read_log_file(uint64_t number, const std::string& name);
  void take_batch(const std::string& name, std::string_view record);
  void check_synced(const std::map<uint64_t, std::string>& logs);
  void lose(Loss loss, std::string_view first, const std::optional<std::string>& last);
  std::optional<Space> space_of_family(const std::string& family) const;
  std::map<uint64_t, std::string> numbered(std::string_view extension) const;
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  const std::string directory_;
  int lock_ = -1;
  FileForm form_ = FileForm::kRocksdb;
  Catalogue catalogue_;
  bool has_catalogue_ = false;  // it tells what counts
  MergedRecords records_;
  std::vector<Loss> losses_;
  std::vector<std::string> notes_;
  // Of logs: the next batch's sequence, once known, and the loss before it whose size it tells.
  std::optional<uint64_t> next_sequence_;
  std::optional<Loss> lost_in_log_;
};

}  // namespace ingot::storage

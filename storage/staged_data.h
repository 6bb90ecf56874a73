// A data directory that a tool makes for a server to be started on: TARGET/ingot-data. It is made
// under another name, in TARGET if that is there and beside it if not, which goes with its maker,
// and gets its own when it is whole and durable. One thread.
#pragma once

#include <string>
#include <string_view>

#include "storage/status.h"

namespace ingot::storage {

class StagedData {
 public:
  // `target`: must not exist, or be an empty directory. `maker`: a word for that other name.
  StagedData(const std::string& target, std::string_view maker);
  ~StagedData();
  StagedData(const StagedData&) = delete;
  StagedData& operator=(const StagedData&) = delete;

  const Status& status() const { return status_; }
  const std::string& target() const { return target_; }    // absolute
  const std::string& scratch() const { return scratch_; }  // for whatever else has to be written
  std::string path() const { return scratch_ + "/ingot-data"; }  // where the caller makes the data

  // Gives what stands in path() its name. It has to be on stable storage already.
  Status publish();

 private:
  Status make_scratch(std::string_view maker);

  std::string target_;
  std::string scratch_;
  Status status_;
};

}  // namespace ingot::storage

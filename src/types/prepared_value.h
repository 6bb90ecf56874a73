// What a STORE command keeps, made past the writer: built in the pool from one state of the data,
// then linked by the writer if the keys that it comes from are still the same.
//
// Threads: the constructor wherever the reader may be used, then the writer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/command/context.h"
#include "src/types/built_value.h"
#include "src/types/fresh_collection.h"

namespace ingot::types {

class PreparedValue : public command::Prepared {
 public:
  // Makes the value of what `keys` sees, and hands its elements to `put`. Later, on other threads:
  // let it capture by value.
  using Build = std::function<BuiltValue(KeyReader& keys, const PutElement& put)>;

  // `sources`: the keys that the value comes from.
  PreparedValue(exec::Services& services, KeyReader& keys, int db,
                const std::vector<std::string>& sources, const Build& build);

  const storage::Status& status() const { return collection_.status(); }
  // Whether the sources are as they were.
  bool built_from(KeyReader& keys, int db, const std::vector<std::string>& sources) const {
    return states_ == states(keys, db, sources);
  }
  // Makes the value that of a record to be stored; false when the group has it already. Good as
  // long as this is.
  [[nodiscard]] bool link(KeyWriter& keys, BuiltValue* value);

 private:
  static std::vector<std::string> states(KeyReader& keys, int db,
                                         const std::vector<std::string>& sources);

  FreshCollection collection_;
  const std::vector<std::string> states_;
  BuiltValue value_;
};

// For WriteContext::needs().
command::Prepare prepare_value(exec::Services& services, int db, std::vector<std::string> sources,
                               PreparedValue::Build build);

}  // namespace ingot::types

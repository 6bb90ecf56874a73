// See prepared_value.h.
#include "src/types/prepared_value.h"

#include <utility>

namespace ingot::types {

using storage::Space;
using storage::Status;

PreparedValue::PreparedValue(exec::Services& services, KeyReader& keys, int db,
                             const std::vector<std::string>& sources, const Build& build)
    : collection_(services),
      states_(states(keys, db, sources)),
      value_(build(keys, [this](Space space, std::string_view element, std::string_view record) {
        collection_.put(space, element, record);
      })) {
  collection_.flush();
}

std::vector<std::string> PreparedValue::states(KeyReader& keys, int db,
                                               const std::vector<std::string>& sources) {
  std::vector<std::string> states;
  for (const std::string& source : sources) {
    Record record;
    states.push_back(keys.peek(db, source, &record) ? record.bytes() : std::string());
  }
  return states;
}

bool PreparedValue::link(KeyWriter& keys, BuiltValue* value) {
  *value = value_;
  if (!value->metadata.collection) return true;
  value->metadata.collection->id = collection_.id();
  return collection_.link(keys);
}

command::Prepare prepare_value(exec::Services& services, int db, std::vector<std::string> sources,
                               PreparedValue::Build build) {
  return [&services, db, sources = std::move(sources), build = std::move(build)](
             KeyReader& keys, exec::Store&, Status* error) -> std::shared_ptr<command::Prepared> {
    auto value = std::make_shared<PreparedValue>(services, keys, db, sources, build);
    *error = keys.data().failed() ? keys.data().error() : value->status();
    return error->ok() ? value : nullptr;
  };
}

}  // namespace ingot::types

// See collection.h.
#include "src/types/collection.h"

#include "src/types/string_value.h"

namespace ingot::types {

using storage::Space;

std::string_view encoding_name(const Record& record) {
  const bool passed = record.limit_passed();
  switch (record.type()) {
    case storage::ValueType::kString:
      return string_encoding(record);
    case storage::ValueType::kList:
      return "quicklist";
    case storage::ValueType::kSet:
      return passed ? "hashtable" : "intset";
    case storage::ValueType::kSortedSet:
      return passed ? "skiplist" : "listpack";
    case storage::ValueType::kHash:
      return passed ? "hashtable" : "listpack";
    case storage::ValueType::kStream:
      return "stream";
  }
  return "unknown";
}

storage::Metadata::Collection copy_collection(KeyWriter& keys,
                                              const storage::Metadata::Collection& source) {
  storage::Metadata::Collection copy = source;
  copy.id = keys.new_collection();
  const std::string prefix = storage::collection_begin(copy.id);
  for (const Space space : {Space::kData, Space::kOrder}) {
    const std::string begin = storage::collection_begin(source.id);
    const auto at = keys.data().cursor(space, begin, storage::collection_end(source.id));
    for (at->seek(begin); at->valid(); at->next()) {
      keys.overlay().put(space, prefix + std::string(at->key().substr(begin.size())), at->value());
    }
    keys.data().check(*at);
  }
  return copy;
}

}  // namespace ingot::types

// Encodings by name, and copies.
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

BuiltValue copy_value(storage::Reader& data, const Record& source, const PutElement& put) {
  return copy_collection(data, source, put,
                         [](Space, std::string_view, std::string_view) { return true; });
}

BuiltValue copy_collection(storage::Reader& data, const Record& source, const PutElement& put,
                           const KeepRecord& keep) {
  BuiltValue copy{.metadata = source.metadata(),
                  .payload = std::string(source.payload()),
                  .size = 1,
                  .error = {}};
  if (!source.collection()) return copy;
  const std::string begin = storage::collection_begin(source.collection()->id);
  const std::string end = storage::collection_end(source.collection()->id);
  for (const Space space : {Space::kData, Space::kOrder}) {
    const auto at = data.cursor(space, begin, end);
    for (at->seek(begin); at->valid() && !data.failed(); at->next()) {
      const std::string_view element = at->key().substr(begin.size());
      if (keep(space, element, at->value())) put(space, element, at->value());
    }
    data.check(*at);
  }
  return copy;
}

}  // namespace ingot::types

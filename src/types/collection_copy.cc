// See collection_copy.h.
#include "src/types/collection_copy.h"

namespace ingot::types {

using storage::Space;
using storage::Status;

CollectionCopy::CollectionCopy(exec::Services& services, storage::Reader& data,
                               const Collection& source)
    : copy_(services), source_(source) {
  const std::string begin = storage::collection_begin(source.id);
  for (const Space space : {Space::kData, Space::kOrder}) {
    const auto at = data.cursor(space, begin, storage::collection_end(source.id));
    for (at->seek(begin); at->valid() && copy_.status().ok(); at->next()) {
      copy_.put(space, at->key().substr(begin.size()), at->value());
    }
    data.check(*at);
  }
  copy_.flush();
}

CollectionCopy::Collection CollectionCopy::collection() const {
  Collection collection = source_;
  collection.id = copy_.id();
  return collection;
}

command::Prepare prepare_copy(exec::Services& services, int db, std::string key) {
  return [&services, db, key = std::move(key)](
             KeyReader& keys, exec::Store&, Status* error) -> std::shared_ptr<command::Prepared> {
    Record source;
    std::shared_ptr<CollectionCopy> copy;
    if (keys.peek(db, key, &source) && source.collection()) {
      copy = std::make_shared<CollectionCopy>(services, keys.data(), *source.collection());
    }
    if (keys.data().failed()) *error = keys.data().error();
    if (error->ok() && copy) *error = copy->status();
    if (!error->ok()) return nullptr;
    // Without a source the command says what that means.
    return copy ? copy : std::make_shared<command::Prepared>();
  };
}

}  // namespace ingot::types

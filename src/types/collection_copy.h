// A large collection copied past the writer: in the pool, from one state of the data; then linked
// by the writer if the source has not changed since.
//
// Threads: the constructor wherever the reader may be used, then the writer.
#pragma once

#include "src/command/context.h"
#include "src/types/fresh_collection.h"

namespace ingot::types {

class CollectionCopy : public command::Prepared {
 public:
  using Collection = storage::Metadata::Collection;

  // `source` is as `data` sees it.
  CollectionCopy(exec::Services& services, storage::Reader& data, const Collection& source);

  const storage::Status& status() const { return copy_.status(); }
  bool copied_from(const Collection& source) const {
    return source.id == source_.id && source.revision == source_.revision;
  }
  Collection collection() const;
  [[nodiscard]] bool link(KeyWriter& keys) { return copy_.link(keys); }

 private:
  FreshCollection copy_;
  const Collection source_;
};

// For WriteContext::needs(): finds the collection under `key` and copies it.
command::Prepare prepare_copy(exec::Services& services, int db, std::string key);

}  // namespace ingot::types

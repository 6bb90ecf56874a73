// A long string put together from another string and a staged argument: what COPY makes of its
// source, what APPEND and SETRANGE make when the argument is large. Done in the pool from committed
// data, then linked by the writer if the base has not changed since; or in the writer itself when
// that does not come to pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/command/context.h"
#include "src/types/fresh_collection.h"
#include "src/types/staged_string.h"
#include "src/types/string_value.h"

namespace ingot::types {

// What is laid over the base.
struct Splice {
  std::shared_ptr<StagedString> value;  // null: nothing, the result is a copy
  uint64_t offset = 0;

  uint64_t end() const { return value ? offset + value->length() : 0; }
};

class StringBuild : public command::Prepared {
 public:
  // `base` null: an empty string; `open_cursor` gives a cursor over a collection's chunks in the
  // state in which `base` was read, or later (then the build is not for use: built_from() tells).
  using OpenCursor = std::function<std::unique_ptr<storage::Cursor>(std::string_view lower,
                                                                    std::string_view upper)>;
  StringBuild(exec::Services& services, const Record* base, const Splice& splice,
              const OpenCursor& open_cursor);

  const storage::Status& status() const { return string_.status(); }
  // Whether the result is for this state of the base and this splice offset.
  bool built_from(const Record* base, const Splice& splice) const;

  uint64_t length() const { return length_; }
  storage::CollectionId id() const { return string_.id(); }
  [[nodiscard]] bool link(KeyWriter& keys) { return string_.link(keys); }

 private:
  using Collection = storage::Metadata::Collection;

  void build(const Splice& splice, ChunkReader* base, ChunkReader* value);

  FreshCollection string_;
  const std::optional<Collection> base_;
  const std::string base_payload_;
  const uint64_t offset_;
  uint64_t length_ = 0;
};

// For WriteContext::needs(): finds the base under `key` and builds.
command::Prepare prepare_string(exec::Services& services, int db, std::string key, Splice splice);

}  // namespace ingot::types

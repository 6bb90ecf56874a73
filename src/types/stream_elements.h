// The elements of one stream in the order of their keys, wherever they stand: those of a small
// stream packed (packed.h) as key, value, key, value ..., those of a large one in the data space
// behind a collection's id. Keys are without that id here; stream_bytes.h draws keys and values.
//
// One thread at a time. Failures latch in the storage::Reader.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "storage/codec.h"
#include "storage/overlay.h"

namespace ingot::types {

class StreamElements {
 public:
  // `data` must outlive this.
  StreamElements(storage::Reader& data, std::string packed)
      : data_(data), packed_(std::move(packed)) {}
  StreamElements(storage::Reader& data, storage::CollectionId id) : data_(data), id_(id) {}

  bool is_large() const { return id_.has_value(); }
  storage::CollectionId id() const { return *id_; }      // requires a large stream
  const std::string& packed() const { return packed_; }  // of a small one

  bool get(std::string_view key, std::string* value) const;
  // Calls `each` with the elements of [lower, upper), the last one first when `reverse`, until it
  // returns false. It may remove elements.
  using Each = std::function<bool(std::string_view key, std::string_view value)>;
  void walk(const std::string& lower, const std::string& upper, bool reverse,
            const Each& each) const;

  // Look-ups of ascending keys in [lower, upper): some by themselves, many with a cursor.
  class Ascending {
   public:
    // `elements` must outlive this, and have the same elements as long.
    Ascending(const StreamElements& elements, const std::string& lower, const std::string& upper)
        : elements_(elements), lower_(lower), upper_(upper) {}
    bool get(std::string_view key, std::string* value);

   private:
    const StreamElements& elements_;
    const std::string lower_;
    const std::string upper_;
    int singly_ = 0;
    std::unique_ptr<storage::Cursor> at_;
  };

  // Of a large stream they change `overlay`.
  void put(storage::Overlay& overlay, std::string_view key, std::string_view value);
  // Of a key that is not there.
  void add(storage::Overlay& overlay, std::string_view key, std::string_view value);
  void remove(storage::Overlay& overlay, std::string_view key);
  // Moves the elements of a small stream to where a large one has them.
  void make_large(storage::Overlay& overlay, storage::CollectionId id);

 private:
  std::string whole_key(std::string_view key) const;
  void walk_small(const std::string& lower, const std::string& upper, bool reverse,
                  const Each& each) const;

  storage::Reader& data_;
  std::optional<storage::CollectionId> id_;
  std::string packed_;
};

}  // namespace ingot::types

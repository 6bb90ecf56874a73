// A long string as a streamed reply: read piece by piece in the reader pool while the client takes
// it, from one state of the data.
//
// Threads: next() and expired() on the connection's I/O thread; the destructor on any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "net/connection.h"
#include "src/exec/services.h"
#include "src/exec/store.h"

namespace ingot::types {

// A client that reads its reply for longer than this is cut: a view keeps whatever was dropped
// after it from being reclaimed.
inline constexpr int64_t kViewAgeMaxMs = 5 * 60 * 1000;

class StringSource final : public net::BodySource {
 public:
  // Bytes [offset, offset + bytes) of the chunked string `id` at the view, where `patches` stand in
  // place of chunks that the view does not have yet.
  struct Span {
    std::shared_ptr<const exec::View> view;
    storage::CollectionId id;
    std::map<uint32_t, std::string> patches;  // chunk number -> its bytes
    uint64_t offset;
    uint64_t bytes;
  };
  StringSource(exec::Services& services, Span span);

  void next(net::IoThread& thread,
            std::move_only_function<void(std::optional<std::string>)> done) override;
  bool expired() override;

 private:
  exec::Services& services_;
  const int64_t view_created_ms_;
  // Shared with the piece that is being read: the connection may go meanwhile. The tasks change
  // its offset and bytes, one at a time.
  std::shared_ptr<Span> span_;
};

}  // namespace ingot::types

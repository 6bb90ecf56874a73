// The records of a range as a streamed reply: read and encoded piece by piece in the reader pool
// while the client takes it, from one state of the data.
//
// Threads: next() and expired() on the connection's I/O thread; the destructor on any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/connection.h"
#include "src/exec/services.h"
#include "src/exec/store.h"

namespace ingot::types {

class RangeSource final : public net::BodySource {
 public:
  struct Range {
    std::shared_ptr<const exec::View> view;
    storage::Space space;
    std::string lower;  // of what is still to be sent
    std::string upper;
    // Appends the encoded record. On pool threads, one at a time.
    std::function<void(std::string_view key, std::string_view value, std::string* out)> encode;
    bool ended = false;
  };
  RangeSource(exec::Services& services, Range range);

  void next(net::IoThread& thread,
            std::move_only_function<void(std::optional<std::string>)> done) override;
  bool expired() override;

 private:
  exec::Services& services_;
  const int64_t view_created_ms_;
  // Shared with the piece that is being read: the connection may go meanwhile.
  std::shared_ptr<Range> range_;
};

}  // namespace ingot::types

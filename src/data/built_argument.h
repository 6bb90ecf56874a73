// A large argument on its way in: its pieces go into the engine as they arrive, in the reader pool,
// so that a string of 512 MB never needs its size in memory. The command that gets it links it to
// a key, or copies from it, or leaves it to be collected. While replicas are told of changes it
// also goes into a file of the backlog, which becomes a part of that when the command is told.
//
// Threads: write() on the connection's I/O thread; everything else once the command is complete,
// by whoever executes it. Owned by shared pointers only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/command_batch.h"
#include "net/connection.h"
#include "src/data/backlog.h"
#include "src/data/built_collection.h"
#include "src/data/services.h"
#include "src/types/told.h"

namespace ingot::data {

class BuiltArgument final : public net::ArgumentSink,
                            public types::ToldBytes,
                            public std::enable_shared_from_this<BuiltArgument> {
 public:
  // `bytes`: the size of the argument. `thread`: the connection's.
  BuiltArgument(Services& services, net::IoThread& thread, uint64_t bytes)
      : services_(services), thread_(thread), length_(bytes) {}

  void write(std::string piece, std::move_only_function<void(bool ok)> ready) override;

  uint64_t length() const { return length_; }
  // The first failure; then there is no string.
  storage::Status status() const;
  // The rest requires status().ok().
  storage::CollectionId id() const { return string_->id(); }
  [[nodiscard]] bool link(types::KeyWriter& keys) { return string_->link(keys); }
  // As it arrived, whatever has been made of it since. Before the group that has it is committed.
  [[nodiscard]] storage::Status read(const Piece& piece) const override;
  // The same in a file, for one who tells of it; null: read() it.
  std::unique_ptr<Backlog::Part> take_part() const { return std::move(part_); }

 private:
  void take(std::string_view piece);

  Services& services_;
  net::IoThread& thread_;
  const uint64_t length_;
  // By one pool task at a time, then by the command:
  storage::Status failure_;
  std::optional<BuiltCollection> string_;
  uint64_t received_ = 0;
  std::string partial_;  // the beginning of the next chunk
  mutable std::unique_ptr<Backlog::Part> part_;
};

}  // namespace ingot::data

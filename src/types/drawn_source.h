// A reply of elements drawn by chance, more than are held: drawn and encoded piece by piece in the
// reader pool while the client takes them, from one state of the data.
//
// Threads: next() and expired() on the connection's I/O thread; the destructor on any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/connection.h"
#include "src/command/reply.h"
#include "src/exec/services.h"
#include "src/exec/store.h"

namespace ingot::types {

class DrawnSource final : public net::BodySource {
 public:
  // Writes `count` elements. On pool threads, one call at a time.
  using Draw =
      std::function<void(storage::Reader& data, uint64_t count, command::ReplySink& reply)>;

  DrawnSource(exec::Services& services, std::shared_ptr<const exec::View> view, uint64_t count,
              Draw draw, int version);

  void next(net::IoThread& thread,
            std::move_only_function<void(std::optional<std::string>)> done) override;
  bool expired() override;

 private:
  struct State {
    std::shared_ptr<const exec::View> view;
    uint64_t left;
    Draw draw;
    int version;
  };
  static std::optional<std::string> draw_piece(storage::Engine& engine, State& state);

  exec::Services& services_;
  const int64_t view_created_ms_;
  std::shared_ptr<State> state_;  // shared with the piece that is being drawn
};

}  // namespace ingot::types

// The commands that one read from a socket completed, with the bytes that their arguments point at.
// Made by the parser on an I/O thread; afterwards immutable, so any thread may read it. Whoever
// keeps the shared pointer keeps the arguments alive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::net {

// Arguments from this size on are offered to Handler::argument_sink and arrive there in pieces.
inline constexpr uint64_t kLargeArgumentBytes = 1u << 20;

// Takes an argument that is too large to hold, piece by piece. Destroyed by whoever holds it last;
// an argument that never completed (the client went away) is simply destroyed.
class ArgumentSink {
 public:
  virtual ~ArgumentSink() = default;
  // Takes the next piece (at most kLargeArgumentBytes). Called on the connection's I/O thread;
  // `ready(ok)` must be called exactly once, on that same I/O thread (at once, or posted later);
  // until then nothing more is read from the client. After ready(false) the rest of the argument
  // is discarded and the command is delivered all the same: whoever executes it asks the sink.
  virtual void write(std::string piece, std::move_only_function<void(bool ok)> ready) = 0;
};

struct Command {
  std::span<const std::string_view> args;  // args[0] is the name; never empty
  // When set, args[diverted_index] is empty and its bytes are in the sink.
  std::shared_ptr<ArgumentSink> sink;
  uint32_t diverted_index = 0;
  // Its arguments would have taken more memory than there is for them: only the name is left.
  bool refused = false;
};

class CommandBatch {
 public:
  std::vector<Command> commands;
  // What the commands occupy, for the memory bound.
  size_t bytes() const {
    return buffer_capacity + arg_store.capacity() * sizeof(std::string_view) +
           commands.capacity() * sizeof(Command);
  }

  // Owned storage behind the views; the parser fills it.
  std::unique_ptr<char[]> buffer;
  size_t buffer_capacity = 0;
  std::vector<std::string_view> arg_store;
};

using BatchPtr = std::shared_ptr<const CommandBatch>;

// A batch of this one command, as small as it can be: for those that are kept for long.
BatchPtr copy_of(const Command& command);

}  // namespace ingot::net

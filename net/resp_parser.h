// Reads RESP and inline commands out of a byte stream, however it is cut into reads. Commands of
// one read become one batch that owns the bytes they point at; what is incomplete moves on to a
// fresh buffer. Holds no memory while there is nothing unparsed.
//
// Threads: one at a time (the connection's I/O thread). The batches are free of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/command_batch.h"

namespace ingot::net {

struct ParseLimits {
  uint64_t bulk_bytes_max = 512ull << 20;
  // Before AUTH Redis takes no more than 10 arguments of 16 KB each.
  bool authenticated = true;
};

class RespParser {
 public:
  enum class Status {
    kNeedMore,       // everything that is complete is in the batch
    kLargeArgument,  // an argument of kLargeArgumentBytes or more begins: divert() or gather() it
    kError,          // error() says what is wrong; again on every further call, unless the client
                     // has been authenticated in between and this was all
  };

  RespParser() = default;
  ~RespParser();
  RespParser(const RespParser&) = delete;
  RespParser& operator=(const RespParser&) = delete;

  // Room for the next bytes, never empty; a new buffer has `read_bytes`. Valid until the next call
  // of anything else. There must be no commands waiting to be taken.
  std::span<char> prepare(size_t read_bytes);
  // That many bytes of it were filled.
  void commit(size_t bytes) { end_ += bytes; }

  Status parse(const ParseLimits& limits);
  std::string_view error() const { return error_; }

  bool has_commands() const { return batch_ && !batch_->commands.empty(); }
  // The commands completed so far. has_commands() must hold.
  BatchPtr take_batch();

  // After kLargeArgument: the arguments before it, and its size.
  std::span<const std::string_view> arguments_so_far() const;
  uint64_t large_argument_bytes() const { return static_cast<uint64_t>(bulk_bytes_); }
  // Passes over the rest of the incomplete command, if there is one: it will be delivered with its
  // name alone, and `refused`. There must be no commands waiting to be taken.
  void refuse();
  // Collects the argument in the buffer like any other.
  void gather() { large_decided_ = true; }
  // The caller takes the argument's bytes out of the stream: first those at hand, by take_raw(),
  // then from the socket. Parsing goes on when it has them all.
  void divert(std::shared_ptr<ArgumentSink> sink);
  // Moves up to `bytes_max` unparsed bytes to the end of `out`; returns how many.
  size_t take_raw(size_t bytes_max, std::string& out);

  // Gives memory back when nothing is unparsed.
  void release_if_empty();
  // Forgets everything.
  void reset();

  // Input held for the command that is not complete, its arguments' table included.
  size_t held_bytes() const;
  // Of the command that is not complete, as many as have come.
  size_t incomplete_bytes() const { return end_ - command_start_; }
  size_t capacity() const { return batch_ ? batch_->bytes() : 0; }

 private:
  enum class Step { kAgain, kNeedMore, kLargeArgument, kError };

  char* data() const { return batch_->buffer.get(); }
  size_t unparsed() const { return end_ - pos_; }
  Step parse_inline();
  Step parse_count(const ParseLimits& limits);
  Step parse_argument(const ParseLimits& limits);
  Step parse_bulk_length(const ParseLimits& limits);
  Step pass_over_argument();
  Step read_line(std::string_view too_long, std::string_view& line);
  Step fail(std::string_view text);
  void push_argument(std::string_view arg);
  void complete_command();
  // Copies the incomplete command, bytes and arguments, to the start of `to`.
  void move_tail(const CommandBatch& from, CommandBatch& to);

  std::unique_ptr<CommandBatch> batch_;  // null while nothing is unparsed
  // Offsets into its buffer: the incomplete command, the next byte to parse, the end of input.
  size_t command_start_ = 0;
  size_t pos_ = 0;
  size_t end_ = 0;
  size_t first_arg_ = 0;     // the incomplete command's first argument in the batch's arg_store
  int64_t args_left_ = 0;    // 0: between commands
  int64_t bulk_bytes_ = -1;  // of the argument that comes next; -1: not known yet
  bool large_decided_ = false;
  bool refused_ = false;    // the incomplete command: refuse()
  uint64_t pass_over_ = 0;  // bytes of its argument that are still to come
  bool error_is_final_ = false;
  uint32_t diverted_index_ = 0;
  std::shared_ptr<ArgumentSink> sink_;  // of the incomplete command
  std::string error_;
};

}  // namespace ingot::net

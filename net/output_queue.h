// What a connection still has to send: encoded replies and streamed bodies, in order. Strings are
// moved in and written from where they are.
//
// Threads: one at a time (the connection's I/O thread).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/asio.h"
#include "net/connection.h"

namespace ingot::net {

class OutputQueue {
 public:
  bool empty() const { return head_ == segments_.size(); }
  size_t size() const { return segments_.size() - head_; }  // segments
  uint64_t bytes() const { return bytes_; }                 // held in memory and not sent
  uint64_t shared_bytes() const { return shared_bytes_; }   // of these, what others may hold, too
  bool has_body() const { return bodies_ > 0; }
  bool has_ending_body() const { return ending_bodies_ > 0; }
  bool has_endless_body() const { return bodies_ > ending_bodies_; }

  // Takes all of `bytes` but its first `sent` bytes.
  void append(std::string&& bytes, size_t sent);
  void append_shared(SharedBytes bytes);  // not empty
  void append_body(std::unique_ptr<BodySource> body);

  // The body whose turn it is, when it has nothing loaded; else null.
  BodySource* hungry_body() const;
  void load_body(std::string&& piece);
  // Whether any body in the queue has waited longer than it may.
  bool has_expired_body() const;
  // Takes the body out whose turn it is.
  [[nodiscard]] std::unique_ptr<BodySource> end_body();

  // Fills `buffers` with what can be written now; returns how many.
  size_t gather(std::span<asio::const_buffer> buffers) const;
  // That much of it was written.
  void consume(size_t bytes);

 private:
  struct Segment {
    std::string bytes;        // of a body: the piece that is loaded
    SharedBytes shared = {};  // or these instead
    size_t sent = 0;
    std::unique_ptr<BodySource> body = {};

    std::string_view view() const { return shared ? *shared : bytes; }
  };

  void drop_front();

  std::vector<Segment> segments_;  // those before head_ are done
  size_t head_ = 0;
  size_t bodies_ = 0;
  size_t ending_bodies_ = 0;  // of them, those that are not endless
  uint64_t bytes_ = 0;
  uint64_t shared_bytes_ = 0;
};

}  // namespace ingot::net

// Where a command writes its reply. Commands never see the protocol's version: the RESP sink
// encodes, the capturing sink keeps a tree for tests and scripts. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/connection.h"
#include "net/resp_writer.h"

namespace ingot::contract {

// A part of a reply that is too long to hold: produced while the client reads.
struct Stream {
  uint64_t bytes = 0;  // exact length
  std::unique_ptr<net::BodySource> source;
};

class ReplySink {
 public:
  virtual ~ReplySink() = default;

  virtual void simple(std::string_view text) = 0;
  virtual void integer(int64_t value) = 0;
  virtual void bulk(std::string_view bytes) = 0;
  virtual void stream(Stream body) = 0;  // a bulk string
  // Encoded elements that an announced array, map or set goes on with.
  virtual void elements(std::unique_ptr<net::BodySource> body) = 0;
  virtual void null() = 0;
  virtual void null_array() = 0;
  // Announce `count` elements (pairs), which the next calls supply.
  virtual void array(uint64_t count) = 0;
  virtual void map(uint64_t pairs) = 0;
  virtual void set(uint64_t count) = 0;
  virtual void push(uint64_t count) = 0;
  virtual void boolean(bool value) = 0;
  virtual void real(double value) = 0;
  virtual void decimal(double value) = 0;  // a real that is printed without an exponent
  virtual void big_number(std::string_view digits) = 0;
  virtual void verbatim(std::string_view format, std::string_view text) = 0;
  virtual void attribute(uint64_t pairs) = 0;
  virtual int version() const = 0;  // 2 or 3: HELLO and DEBUG PROTOCOL ask
  // For those who keep replies whole and take no stream(): how much they keep. 0: streams are fine.
  virtual uint64_t keeps_bytes_max() const { return 0; }
  // Whether the reply may have so many bytes more, which its command holds already. If not it is
  // refused whatever else comes, and reads fail.
  virtual bool may_hold(uint64_t /*bytes*/) { return true; }
  // HELLO: what follows is encoded in the new version. Means nothing to a sink that does not
  // encode.
  virtual void set_version(int) {}

  // With its code, such as "ERR no such key". Marks the command as failed: what it wrote is undone.
  void error(std::string_view text) {
    erred_ = true;
    last_error_.assign(text);
    write_error(text);
  }
  // An error after which what the command wrote stays: another server has seen it happen.
  void partial_error(std::string_view text) {
    error(text);
    undoes_ = false;
  }
  // The same, of an error that has been counted where it happened.
  void repeated_error(std::string_view text) {
    partial_error(text);
    counts_ = false;
  }
  void ok() { simple("OK"); }

  bool erred() const { return erred_; }
  bool undoes() const { return erred_ && undoes_; }
  bool counts_error() const { return erred_ && counts_; }
  const std::string& last_error() const { return last_error_; }  // empty unless erred()
  void clear_erred() {
    erred_ = false;
    undoes_ = counts_ = true;
    last_error_.clear();
  }

 protected:
  virtual void write_error(std::string_view text) = 0;

 private:
  bool erred_ = false;
  bool undoes_ = true;
  bool counts_ = true;
  std::string last_error_;
};

// WAITAOF's: whether this server has synced what the client wrote, and how many replicas have.
inline void reply_synced(ReplySink& reply, bool synced, size_t replicas) {
  reply.array(2);
  reply.integer(synced ? 1 : 0);
  reply.integer(static_cast<int64_t>(replicas));
}

// Encoded replies in the order they were made; streams stand between stretches of bytes.
struct EncodedReply {
  struct Body {
    size_t offset;  // in `bytes`, where the body belongs
    std::unique_ptr<net::BodySource> source;
  };
  std::string bytes;
  std::vector<Body> bodies;

  bool empty() const { return bytes.empty() && bodies.empty(); }
  void clear() {
    bytes.clear();
    bodies.clear();
  }
  // Forgets what came after; a mark is bytes.size() at an earlier time.
  void truncate(size_t mark);
};

class RespSink : public ReplySink {
 public:
  // Appends to `out`, which must outlive the sink.
  RespSink(EncodedReply& out, int version) : out_(out), writer_(out.bytes, version) {}

  void simple(std::string_view text) override { writer_.simple(text); }
  void integer(int64_t value) override { writer_.integer(value); }
  void bulk(std::string_view bytes) override { writer_.bulk(bytes); }
  void stream(Stream body) override;
  void elements(std::unique_ptr<net::BodySource> body) override;
  void null() override { writer_.null(); }
  void null_array() override { writer_.null_array(); }
  void array(uint64_t count) override { writer_.array(count); }
  void map(uint64_t pairs) override { writer_.map(pairs); }
  void set(uint64_t count) override { writer_.set(count); }
  void push(uint64_t count) override { writer_.push(count); }
  void boolean(bool value) override { writer_.boolean(value); }
  void real(double value) override { writer_.real(value); }
  void decimal(double value) override { writer_.decimal(value); }
  void big_number(std::string_view digits) override { writer_.big_number(digits); }
  void verbatim(std::string_view format, std::string_view text) override {
    writer_.verbatim(format, text);
  }
  void attribute(uint64_t pairs) override { writer_.attribute(pairs); }
  int version() const override { return writer_.version(); }
  void set_version(int version) override { writer_.set_version(version); }

 protected:
  void write_error(std::string_view text) override { writer_.error(text); }

 private:
  EncodedReply& out_;
  net::RespWriter writer_;
};

}  // namespace ingot::contract

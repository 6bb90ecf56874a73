// The reply sink that keeps a tree instead of bytes: the twin of RespSink for scripts and tests.
// One thread at a time.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "src/contract/reply.h"

namespace ingot::contract {

// One reply as the command gave it, before any protocol narrows it.
struct Value {
  enum class Kind : uint8_t {
    kSimple,
    kError,
    kInteger,
    kBulk,
    kNull,
    kNullArray,
    kArray,
    kMap,
    kSet,
    kPush,
    kBoolean,
    kReal,
    kBigNumber,
    kVerbatim,
    kAttribute,
  };

  Kind kind = Kind::kNull;
  std::string text;     // of whatever has one; of kVerbatim "txt:" and the text
  int64_t integer = 0;  // kBoolean: 0 or 1
  double real = 0;
  std::vector<Value> items;  // keys and values of kMap and kAttribute in turn

  bool operator==(const Value&) const = default;
};

// On one line, for tests: [OK, 1, "a\x00", {"k" => nil}].
std::string printable(const Value& value);
inline std::ostream& operator<<(std::ostream& out, const Value& value) {
  return out << printable(value);
}

class CaptureSink : public ReplySink {
 public:
  explicit CaptureSink(int version = 3) : version_(version) {}

  // The replies made so far. An attribute stands before what it describes, and counts for nothing.
  const std::vector<Value>& values() const { return values_; }
  // Whether no array or map still lacks some of its announced elements.
  bool complete() const { return open_.empty(); }

  void simple(std::string_view text) override { add_text(Value::Kind::kSimple, text); }
  void integer(int64_t value) override;
  void bulk(std::string_view bytes) override { add_text(Value::Kind::kBulk, bytes); }
  // Takes the whole body into memory and waits for it, so not on a thread that its source needs.
  // A body that breaks off becomes an error.
  void stream(Stream body) override;
  // Elements that were encoded cannot be taken apart: the reply becomes an error.
  void elements(std::unique_ptr<net::BodySource> body) override;
  void null() override { add({.kind = Value::Kind::kNull}); }
  void null_array() override { add({.kind = Value::Kind::kNullArray}); }
  void array(uint64_t count) override { open(Value::Kind::kArray, count); }
  void map(uint64_t pairs) override { open(Value::Kind::kMap, 2 * pairs); }
  void set(uint64_t count) override { open(Value::Kind::kSet, count); }
  void push(uint64_t count) override { open(Value::Kind::kPush, count); }
  void boolean(bool value) override;
  void real(double value) override;
  void decimal(double value) override { real(value); }
  void big_number(std::string_view digits) override { add_text(Value::Kind::kBigNumber, digits); }
  void verbatim(std::string_view format, std::string_view text) override;
  void attribute(uint64_t pairs) override { open(Value::Kind::kAttribute, 2 * pairs); }
  int version() const override { return version_; }
  void set_version(int version) override { version_ = version; }

 protected:
  void write_error(std::string_view text) override { add_text(Value::Kind::kError, text); }

 private:
  struct Open {
    Value value;
    uint64_t left;
  };

  void add_text(Value::Kind kind, std::string_view text);
  void open(Value::Kind kind, uint64_t elements);
  void add(Value value);

  int version_;
  std::vector<Value> values_;
  std::vector<Open> open_;  // the innermost last
};

}  // namespace ingot::contract

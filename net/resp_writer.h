// Encodes replies as RESP2 or RESP3 at the end of a string. A value type that borrows the string;
// used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::net {

class RespWriter {
 public:
  RespWriter(std::string& out, int version) : out_(&out), version_(version) {}

  int version() const { return version_; }
  void set_version(int version) { version_ = version; }  // 2 or 3
  void set_out(std::string& out) { out_ = &out; }

  void simple(std::string_view text);  // +text
  void error(std::string_view text);   // -text; CR and LF in it become spaces
  void integer(int64_t value);         // :value
  void bulk(std::string_view bytes);   // $n
  void bulk_header(uint64_t bytes);    // $n CRLF; the caller sends the body, then bulk_end()
  void bulk_end();                     // CRLF
  void null();                         // $-1, or _ in RESP3
  void null_array();                   // *-1, or _ in RESP3
  void array(uint64_t count);          // *n
  void map(uint64_t pairs);            // *2n, or %n in RESP3
  void set(uint64_t count);            // *n, or ~n in RESP3
  void push(uint64_t count);           // *n, or >n in RESP3
  void boolean(bool value);            // :1 :0, or #t #f in RESP3
  void real(double value);             // bulk, or , in RESP3; 17 digits, as Redis 7.0 prints it
  void decimal(double value);          // the same; 17 decimals at most, no exponent
  void big_number(std::string_view digits);  // bulk, or ( in RESP3
  void verbatim(std::string_view format,
                std::string_view text);  // bulk, or = in RESP3; format: 3 letters
  void attribute(uint64_t pairs);        // nothing in RESP2 (send no pairs), |n in RESP3

 private:
  std::string* out_;
  int version_;
};

}  // namespace ingot::net

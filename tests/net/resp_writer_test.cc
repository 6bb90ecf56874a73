// The writer's forms; those of RESP3 and of doubles were taken from a redis-server 7.0 (DEBUG
// PROTOCOL, ZSCORE).
#include "net/resp_writer.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

namespace ingot::net {
namespace {

template <typename Write>
std::string written(int version, Write&& write) {
  std::string out;
  RespWriter writer(out, version);
  write(writer);
  return out;
}

#define WRITES(call, resp2, resp3)                                        \
  CHECK(written(2, [](RespWriter& w) { w.call; }) == std::string(resp2)); \
  CHECK(written(3, [](RespWriter& w) { w.call; }) == std::string(resp3))

TEST_CASE("types that are the same in both versions", "[writer]") {
  WRITES(simple("OK"), "+OK\r\n", "+OK\r\n");
  WRITES(error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n");
  WRITES(integer(0), ":0\r\n", ":0\r\n");
  WRITES(integer(std::numeric_limits<int64_t>::min()), ":-9223372036854775808\r\n",
         ":-9223372036854775808\r\n");
  WRITES(bulk(""), "$0\r\n\r\n", "$0\r\n\r\n");
  WRITES(bulk("a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n");
  WRITES(bulk_header(18446744073709551615u), "$18446744073709551615\r\n",
         "$18446744073709551615\r\n");
  WRITES(bulk_end(), "\r\n", "\r\n");
  WRITES(array(3), "*3\r\n", "*3\r\n");
}

TEST_CASE("types that RESP3 has of its own", "[writer]") {
  WRITES(null(), "$-1\r\n", "_\r\n");
  WRITES(null_array(), "*-1\r\n", "_\r\n");
  WRITES(map(3), "*6\r\n", "%3\r\n");
  WRITES(set(3), "*3\r\n", "~3\r\n");
  WRITES(push(2), "*2\r\n", ">2\r\n");
  WRITES(boolean(true), ":1\r\n", "#t\r\n");
  WRITES(boolean(false), ":0\r\n", "#f\r\n");
  WRITES(big_number("1234567999999999999999999999999999999"),
         "$37\r\n1234567999999999999999999999999999999\r\n",
         "(1234567999999999999999999999999999999\r\n");
  WRITES(verbatim("txt", "This is a verbatim\nstring"), "$25\r\nThis is a verbatim\nstring\r\n",
         "=29\r\ntxt:This is a verbatim\nstring\r\n");
  WRITES(attribute(1), "", "|1\r\n");
}

TEST_CASE("doubles have the 17 digits of Redis 7.0", "[writer]") {
  WRITES(real(3), "$1\r\n3\r\n", ",3\r\n");
  WRITES(real(17.5), "$4\r\n17.5\r\n", ",17.5\r\n");
  WRITES(real(3.141), "$5\r\n3.141\r\n", ",3.141\r\n");
  WRITES(real(3.1), "$18\r\n3.1000000000000001\r\n", ",3.1000000000000001\r\n");
  WRITES(real(0.1), "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n");
  WRITES(real(1e-7), "$22\r\n9.9999999999999995e-08\r\n", ",9.9999999999999995e-08\r\n");
  WRITES(real(1e21), "$5\r\n1e+21\r\n", ",1e+21\r\n");
  WRITES(real(123456789012345678), "$22\r\n1.2345678901234568e+17\r\n",
         ",1.2345678901234568e+17\r\n");
  WRITES(decimal(13.361389338970184), "$20\r\n13.36138933897018433\r\n",
         ",13.36138933897018433\r\n");
  WRITES(decimal(-2), "$2\r\n-2\r\n", ",-2\r\n");
  WRITES(decimal(100), "$3\r\n100\r\n", ",100\r\n");
  WRITES(decimal(-1e-300), "$1\r\n0\r\n", ",0\r\n");
  WRITES(real(std::numeric_limits<double>::infinity()), "$3\r\ninf\r\n", ",inf\r\n");
  WRITES(real(-std::numeric_limits<double>::infinity()), "$4\r\n-inf\r\n", ",-inf\r\n");
  WRITES(real(std::numeric_limits<double>::quiet_NaN()), "$3\r\nnan\r\n", ",nan\r\n");
}

TEST_CASE("strings of every length", "[writer]") {
  for (size_t length = 0; length <= 300; ++length) {
    const std::string bytes(length, 'x');
    CHECK(written(2, [&](RespWriter& w) { w.bulk(bytes); }) ==
          "$" + std::to_string(length) + "\r\n" + bytes + "\r\n");
  }
}

TEST_CASE("replies append, and the version may change between them", "[writer]") {
  std::string first = "+before\r\n";
  std::string second;
  RespWriter writer(first, 2);
  writer.null();
  writer.set_version(3);
  writer.null();
  writer.set_out(second);
  writer.simple("x");
  CHECK(first == "+before\r\n$-1\r\n_\r\n");
  CHECK(second == "+x\r\n");
  CHECK(writer.version() == 3);
}

}  // namespace
}  // namespace ingot::net

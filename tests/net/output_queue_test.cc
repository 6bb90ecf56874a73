// net/output_queue.h: what was sent is let go, however the rest came to be there.
#include "net/output_queue.h"

#include <array>
#include <catch2/catch.hpp>

namespace ingot::net {
namespace {

constexpr size_t kLarge = 1 << 20;

std::string_view front(const OutputQueue& queue) {
  std::array<asio::const_buffer, 1> buffers;
  if (queue.gather(buffers) == 0) return {};
  return {static_cast<const char*>(buffers[0].data()), buffers[0].size()};
}

std::string numbered_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>('a' + i % 23);
  return bytes;
}

}  // namespace

TEST_CASE("OutputQueue: who owes little of much holds little") {
  const std::string expected = numbered_bytes(kLarge);
  std::string bytes = expected;
  const char* const whole = bytes.data();
  OutputQueue queue;
  SECTION("when it comes") {
    queue.append(std::move(bytes), kLarge - 100);
    CHECK(queue.bytes() == 100);
  }
  SECTION("when it is sent") {
    queue.append(std::move(bytes), 0);
    REQUIRE(front(queue).data() == whole);
    queue.consume(kLarge / 4);
    CHECK(front(queue).data() == whole + kLarge / 4);  // little would be won
    queue.consume(kLarge - kLarge / 4 - 100);
  }
  CHECK(front(queue) == std::string_view(expected).substr(kLarge - 100));
  CHECK((front(queue).data() < whole || front(queue).data() >= whole + kLarge));
  queue.append("more", 0);
  queue.consume(100);
  CHECK(front(queue) == "more");
  queue.consume(4);
  CHECK(queue.empty());
  CHECK(queue.bytes() == 0);
}

}  // namespace ingot::net

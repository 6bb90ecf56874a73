// The sink that keeps replies as trees.
#include "src/contract/capture.h"

#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

using namespace ingot::contract;
using ingot::net::BodySource;
using ingot::net::IoThread;
using Kind = Value::Kind;
using std::string_view_literals::operator""sv;

namespace {

Value only(const CaptureSink& sink) {
  REQUIRE(sink.complete());
  REQUIRE(sink.values().size() == 1);
  return sink.values().front();
}

Value bulk(std::string text) {
  return {.kind = Kind::kBulk, .text = std::move(text)};
}

// Answers at once or, when `later`, from a thread of its own by way of the connection's.
class Pieces : public BodySource {
 public:
  using Piece = std::optional<std::string>;
  Pieces(std::deque<Piece> pieces, bool later) : pieces_(std::move(pieces)), later_(later) {}
  ~Pieces() override {
    if (worker_.joinable()) worker_.join();
  }

  void next(IoThread& thread, std::move_only_function<void(Piece)> done) override {
    CHECK(thread.is_current());
    Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    if (!later_) return done(std::move(piece));
    if (worker_.joinable()) worker_.join();
    worker_ = std::thread([&thread, piece = std::move(piece), done = std::move(done)]() mutable {
      thread.post(
          [piece = std::move(piece), done = std::move(done)]() mutable { done(std::move(piece)); });
    });
  }

 private:
  std::deque<Piece> pieces_;
  const bool later_;
  std::thread worker_;
};

}  // namespace

TEST_CASE("a reply becomes one tree", "[capture]") {
  CaptureSink sink;
  sink.array(4);
  sink.integer(-7);
  sink.map(2);
  sink.bulk("empty");
  sink.array(0);
  sink.bulk("pair");
  sink.set(2);
  sink.boolean(true);
  sink.null();
  CHECK_FALSE(sink.complete());
  CHECK(sink.values().empty());
  sink.error("ERR no");
  sink.verbatim("txt", "a\"b");
  CHECK(printable(only(sink)) ==
        R"([-7, {"empty" => [], "pair" => set (true, nil)}, (error) ERR no, verbatim "txt:a\"b"])");
  CHECK(sink.erred());
  CHECK(sink.last_error() == "ERR no");
}

TEST_CASE("replies stand side by side", "[capture]") {
  CaptureSink sink;
  sink.ok();
  sink.map(0);
  sink.real(0.5);
  sink.big_number("123");
  sink.null_array();
  sink.push(1);
  sink.bulk("\0\x7f\\"sv);
  std::string all;
  for (const Value& value : sink.values()) all += printable(value) + "; ";
  CHECK(all == R"(OK; {}; real 0.5; number 123; nil array; push ["\x00\x7f\\"]; )");
}

TEST_CASE("an attribute is no element of the array it stands in", "[capture]") {
  CaptureSink sink;
  sink.array(2);
  sink.integer(1);
  sink.attribute(1);
  sink.bulk("popularity");
  sink.integer(90);
  CHECK_FALSE(sink.complete());
  sink.integer(2);
  CHECK(printable(only(sink)) == R"([1, attribute {"popularity" => 90}, 2])");
}

TEST_CASE("values compare by kind and content", "[capture]") {
  CaptureSink sink;
  sink.array(2);
  sink.bulk("a");
  sink.bulk("b");
  Value value = only(sink);
  CHECK(value == Value{.kind = Kind::kArray, .items = {bulk("a"), bulk("b")}});
  CHECK(value != Value{.kind = Kind::kSet, .items = {bulk("a"), bulk("b")}});
  CHECK(value != Value{.kind = Kind::kArray, .items = {bulk("b"), bulk("a")}});
  CHECK(bulk("1") != Value{.kind = Kind::kInteger, .integer = 1});
}

TEST_CASE("a streamed body is taken whole", "[capture]") {
  bool later = GENERATE(false, true);
  CaptureSink sink;
  sink.array(1);
  sink.stream(
      {.bytes = 6,
       .source = std::make_unique<Pieces>(std::deque<Pieces::Piece>{"abc", "de", "f", ""}, later)});
  CHECK(only(sink) == Value{.kind = Kind::kArray, .items = {bulk("abcdef")}});
}

TEST_CASE("a streamed body that breaks off is an error", "[capture]") {
  bool later = GENERATE(false, true);
  CaptureSink sink;
  sink.stream(
      {.bytes = 6,
       .source = std::make_unique<Pieces>(std::deque<Pieces::Piece>{"abc", std::nullopt}, later)});
  CHECK(only(sink).kind == Kind::kError);
  CHECK(sink.erred());
}

// Building the tree of a reply, reading streamed bodies to their end, and printing it for tests.
#include "src/contract/capture.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace ingot::contract {

namespace {

// The calling thread in the part of a connection's: it runs what is posted to it while it waits.
class WaitingThread : public net::IoThread {
 public:
  void post(std::move_only_function<void()> task) override {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }
  bool is_current() const override { return std::this_thread::get_id() == id_; }
  int index() const override { return 0; }

  void run_one() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !tasks_.empty(); });
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }

 private:
  const std::thread::id id_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::move_only_function<void()>> tasks_;  // by mutex_
};

// Nothing when the body breaks off.
std::optional<std::string> read_all(net::BodySource& source) {
  WaitingThread thread;
  std::string body;
  while (true) {
    bool answered = false;
    std::optional<std::string> piece;
    source.next(thread, [&](std::optional<std::string> next) {
      piece = std::move(next);
      answered = true;
    });
    while (!answered) thread.run_one();
    if (!piece) return std::nullopt;
    if (piece->empty()) return body;
    body += *piece;
  }
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return result + '"';
}

std::string listed(const Value& value, char open, char close) {
  std::string result(1, open);
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) result += ", ";
    result += printable(value.items[i]);
  }
  return result + close;
}

std::string paired(const Value& value) {
  std::string result = "{";
  for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
    if (i > 0) result += ", ";
    result += printable(value.items[i]) + " => " + printable(value.items[i + 1]);
  }
  return result + '}';
}

}  // namespace

std::string printable(const Value& value) {
  using Kind = Value::Kind;
  switch (value.kind) {
    case Kind::kSimple:
      return value.text;
    case Kind::kError:
      return "(error) " + value.text;
    case Kind::kInteger:
      return std::to_string(value.integer);
    case Kind::kBulk:
      return in_quotes(value.text);
    case Kind::kNull:
      return "nil";
    case Kind::kNullArray:
      return "nil array";
    case Kind::kArray:
      return listed(value, '[', ']');
    case Kind::kSet:
      return "set " + listed(value, '(', ')');
    case Kind::kPush:
      return "push " + listed(value, '[', ']');
    case Kind::kMap:
      return paired(value);
    case Kind::kAttribute:
      return "attribute " + paired(value);
    case Kind::kBoolean:
      return value.integer != 0 ? "true" : "false";
    case Kind::kReal:
      return fmt::format("real {}", value.real);
    case Kind::kBigNumber:
      return "number " + value.text;
    case Kind::kVerbatim:
      return "verbatim " + in_quotes(value.text);
  }
  std::unreachable();
}

void CaptureSink::integer(int64_t value) {
  add({.kind = Value::Kind::kInteger, .integer = value});
}

void CaptureSink::boolean(bool value) {
  add({.kind = Value::Kind::kBoolean, .integer = value});
}

void CaptureSink::real(double value) {
  add({.kind = Value::Kind::kReal, .real = value});
}

void CaptureSink::verbatim(std::string_view format, std::string_view text) {
  add_text(Value::Kind::kVerbatim, std::string(format) + ":" + std::string(text));
}

void CaptureSink::stream(Stream body) {
  if (auto bytes = read_all(*body.source)) {
    bulk(*bytes);
  } else {
    error("ERR the value could not be read");
  }
}

void CaptureSink::elements(std::unique_ptr<net::BodySource>) {
  error("ERR the reply is too long to be kept");
}

void CaptureSink::add_text(Value::Kind kind, std::string_view text) {
  add({.kind = kind, .text = std::string(text)});
}

void CaptureSink::open(Value::Kind kind, uint64_t elements) {
  if (elements == 0) return add({.kind = kind});
  open_.push_back({.value = {.kind = kind}, .left = elements});
}

void CaptureSink::add(Value value) {
  while (!open_.empty()) {
    Open& parent = open_.back();
    if (value.kind != Value::Kind::kAttribute) --parent.left;
    parent.value.items.push_back(std::move(value));
    if (parent.left > 0) return;
    value = std::move(parent.value);
    open_.pop_back();
  }
  values_.push_back(std::move(value));
}

}  // namespace ingot::contract

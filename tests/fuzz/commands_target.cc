// Commands of several clients to a whole server in this process, on the engine in memory. Each is
// answered with one well-formed reply, and ingot-check's questions about all that is stored in the
// end are answered well.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/inline_args.h"
#include "src/check/data_check.h"
#include "src/contract/args.h"
#include "storage/check.h"
#include "storage/memory/memory_engine.h"
#include "tests/fuzz/targets.h"
#include "tests/src/in_process.h"

namespace ingot::fuzz {
namespace {

using contract::equals_ignore_case;
using test::InProcess;
using test::InProcessClient;
using Line = InProcessClient::Line;

constexpr size_t kLinesMax = 200;
constexpr size_t kWaitingMax = 8;

// Where one reply ends that begins at `at`; npos: nowhere.
size_t reply_end(std::string_view bytes, size_t at) {
  const size_t line_end = bytes.find("\r\n", at);
  if (line_end == bytes.npos) return bytes.npos;
  const char type = bytes[at];
  const size_t behind = line_end + 2;
  if (std::string_view("+-:_#,(").find(type) != std::string_view::npos) return behind;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(bytes.data() + at + 1, bytes.data() + line_end, count);
  if (error != std::errc() || end != bytes.data() + line_end || count < -1) return bytes.npos;
  if (std::string_view("$=!").find(type) != std::string_view::npos) {
    if (count == -1) return behind;
    const size_t size = static_cast<size_t>(count);
    if (bytes.size() - behind < size + 2 || bytes.substr(behind + size, 2) != "\r\n") {
      return bytes.npos;
    }
    return behind + size + 2;
  }
  if (std::string_view("*~>%").find(type) == std::string_view::npos) return bytes.npos;
  if (type == '%') count *= 2;
  size_t next = behind;
  for (; count > 0 && next < bytes.size(); --count) {
    next = reply_end(bytes, next);
    if (next == bytes.npos) return next;
  }
  return count > 0 ? bytes.npos : next;
}

void check_replies(std::string_view bytes, size_t count) {
  size_t at = 0;
  for (; count > 0 && at < bytes.size(); --count) {
    at = reply_end(bytes, at);
    INGOT_CHECK(at != bytes.npos);
  }
  INGOT_CHECK(count == 0 && at == bytes.size());
}

bool has_word(const Line& line, std::string_view word) {
  return std::ranges::any_of(line,
                             [&](const std::string& w) { return equals_ignore_case(w, word); });
}

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](auto other) { return equals_ignore_case(name, other); });
}

// What would reach out of this process, end it or a connection, wait, take long by design, or undo
// the limit that keeps strings small.
bool is_left_out(const Line& line) {
  const std::string& name = line[0];
  if (is_any_of(name, {"debug", "migrate", "shutdown", "quit", "post", "host:", "pfselftest"})) {
    return true;
  }
  if (equals_ignore_case(name, "client")) return has_word(line, "reply") || has_word(line, "kill");
  if (equals_ignore_case(name, "command")) return line.size() < 3;
  if (equals_ignore_case(name, "config")) return has_word(line, "proto-max-bulk-len");
  if (is_any_of(name, {"hrandfield", "srandmember", "zrandmember"})) {
    // So many may be asked for as the client can read.
    return line.size() > 2 && line[2].starts_with('-') && line[2].size() > 4;
  }
  return false;
}

bool may_wait(const Line& line) {
  const std::string& name = line[0];
  return has_word(line, "block") || is_any_of(name, {"blpop", "brpop", "blmove", "brpoplpush",
                                                     "blmpop", "bzpopmin", "bzpopmax", "bzmpop"});
}

std::optional<Line> split(std::string_view text) {
  std::string bytes(text);
  std::vector<std::string_view> words;
  if (!net::split_inline(bytes.data(), bytes.data() + bytes.size(), words)) return std::nullopt;
  return Line(words.begin(), words.end());
}

class Play {
 public:
  Play() {
    // Two strings of the usual limit and LCS would take a day.
    clients_[0]->run({"CONFIG", "SET", "proto-max-bulk-len", "1048576"});
  }

  void take(std::string_view text) {
    if (text.starts_with('+')) return pass_time(text.substr(1));
    const size_t client = text.starts_with('~') ? 1 : 0;
    auto line = split(text.substr(client));
    if (!line || line->empty() || is_left_out(*line)) return;
    if (client != sender_ || may_wait(*line)) flush();
    if (may_wait(*line)) return wait(std::move(*line));
    sender_ = client;
    lines_.push_back(std::move(*line));
  }

  void end() {
    flush();
    waiting_.clear();
    for (auto& client : clients_) client.reset();
    server_.stop();
    bool sound = true;
    check::DataCheck(server_.services().data.store.engine(), [&](const std::string& problem) {
      std::fprintf(stderr, "%s\n", problem.c_str());
      sound = false;
    }).run();
    INGOT_CHECK(sound);
  }

 private:
  void flush() {
    if (lines_.empty()) return;
    const std::string replies = clients_[sender_]->pipeline(lines_);
    INGOT_CHECK(!clients_[sender_]->is_closed());
    check_replies(replies, lines_.size());
    lines_.clear();
  }

  // It has a client of its own, and nobody waits for it.
  void wait(Line line) {
    if (waiting_.size() == kWaitingMax) return;
    waiting_.push_back(std::make_unique<InProcessClient>(server_));
    waiting_.back()->send({std::move(line)});
  }

  void pass_time(std::string_view text) {
    flush();
    uint32_t ms = 0;
    std::from_chars(text.data(), text.data() + text.size(), ms);
    server_.now_ms += ms;
  }

  InProcess server_{std::make_unique<storage::MemoryEngine>(storage::EngineOptions{})};
  std::unique_ptr<InProcessClient> clients_[2] = {std::make_unique<InProcessClient>(server_),
                                                  std::make_unique<InProcessClient>(server_)};
  std::vector<std::unique_ptr<InProcessClient>> waiting_;
  size_t sender_ = 0;
  std::vector<Line> lines_;  // the sender's, not sent yet
};

}  // namespace

void commands(std::string_view input) {
  Play play;
  for (size_t lines = 0; lines < kLinesMax && !input.empty(); ++lines) {
    const size_t end = std::min(input.find('\n'), input.size());
    play.take(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  play.end();
}

}  // namespace ingot::fuzz

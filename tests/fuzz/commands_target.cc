// Commands of several clients to a whole server in this process, on the engine in memory. Each is
// answered with one well-formed reply, and ingot-check's questions about all that is stored in the
// end are answered well. A second server, which keeps no collection in its key's record, gives the
// same replies.
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

std::vector<std::string> split_replies(std::string_view bytes) {
  std::vector<std::string> replies;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = reply_end(bytes, at);
    INGOT_CHECK(end != bytes.npos);
    replies.emplace_back(bytes.substr(at, end - at));
    at = end;
  }
  return replies;
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
  if (is_any_of(name, {"debug", "migrate", "shutdown", "quit", "post", "host:", "pfselftest",
                       "wait", "psync", "sync", "replconf"})) {
    return true;
  }
  if (equals_ignore_case(name, "client")) return has_word(line, "reply") || has_word(line, "kill");
  if (equals_ignore_case(name, "command")) return line.size() < 3;
  if (equals_ignore_case(name, "config")) {
    return has_word(line, "proto-max-bulk-len") || has_word(line, "inline-max-bytes");
  }
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

// Whose replies are not the same on every server.
bool is_by_chance(const Line& line) {
  return is_any_of(line[0],
                   {"client", "config", "dbsize", "dump", "hrandfield", "hscan", "info", "memory",
                    "randomkey", "scan", "srandmember", "sscan", "time", "zrandmember", "zscan"});
}

// Ranges by member, which mean nothing where scores differ: what Redis finds then depends on the
// sorted set's form, too.
bool is_by_lex(const Line& line) {
  return has_word(line, "bylex") ||
         is_any_of(line[0], {"zlexcount", "zrangebylex", "zremrangebylex", "zrevrangebylex"});
}

// Whether all members of sorted sets have the same score, as far as the commands tell.
class Scores {
 public:
  void take(const Line& line, std::string_view reply) {
    if (equals_ignore_case(line[0], "flushall") && reply == "+OK\r\n") *this = {};
    if (is_any_of(line[0], {"geoadd", "georadius", "georadiusbymember", "geosearchstore", "restore",
                            "zincrby", "zinterstore", "zunionstore"})) {
      differ_ = true;
    }
    if (!equals_ignore_case(line[0], "zadd")) return;
    for (size_t at = line.size(); at >= 4; at -= 2) {
      const std::string& score = line[at - 2];
      differ_ = differ_ || (one_ && *one_ != score);
      one_ = score;
    }
  }
  bool differ() const { return differ_; }

 private:
  std::optional<std::string> one_;
  bool differ_ = false;
};

// Whose items come in the order of a record or of the engine.
bool has_no_order(const Line& line) {
  return is_any_of(line[0], {"exec", "hgetall", "hkeys", "hvals", "sdiff", "sinter", "smembers",
                             "sort", "sort_ro", "sunion"});
}

std::string with_sorted_lines(std::string_view reply) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < reply.size();) {
    const size_t end = std::min(reply.find("\r\n", at), reply.size() - 2) + 2;
    lines.push_back(reply.substr(at, end - at));
    at = end;
  }
  std::ranges::sort(lines);
  std::string sorted;
  for (const std::string_view line : lines) sorted += line;
  return sorted;
}

std::optional<Line> split(std::string_view text) {
  std::string bytes(text);
  std::vector<std::string_view> words;
  if (!net::split_inline(bytes.data(), bytes.data() + bytes.size(), words)) return std::nullopt;
  return Line(words.begin(), words.end());
}

class Play {
 public:
  explicit Play(const char* inline_max_bytes) {
    // Two strings of the usual limit and LCS would take a day.
    clients_[0]->run(
        {"CONFIG", "SET", "proto-max-bulk-len", "1048576", "inline-max-bytes", inline_max_bytes});
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

  // Ends it; answers the replies that another play of the same lines must have, too.
  std::vector<std::string> end() {
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
    return std::move(told_);
  }

 private:
  void flush() {
    if (lines_.empty()) return;
    const auto replies = split_replies(clients_[sender_]->pipeline(lines_));
    INGOT_CHECK(!clients_[sender_]->is_closed());
    INGOT_CHECK(replies.size() == lines_.size());
    for (size_t i = 0; i < lines_.size(); ++i) tell(lines_[i], replies[i]);
    lines_.clear();
  }

  void tell(const Line& line, const std::string& reply) {
    chance_stored_ = chance_stored_ || equals_ignore_case(line[0], "spop") ||
                     (has_word(line, "by") && has_word(line, "store"));
    scores_.take(line, reply);
    const bool lex_by_chance = scores_.differ() && is_by_lex(line);
    const bool changes = is_any_of(line[0], {"zremrangebylex", "zrangestore"});
    chance_stored_ = chance_stored_ || (lex_by_chance && changes);
    const bool by_chance = is_by_chance(line) || lex_by_chance;
    chance_queued_ = chance_queued_ || by_chance;
    if (chance_stored_ || by_chance) return;
    if (chance_queued_ && equals_ignore_case(line[0], "exec")) return;
    told_.push_back(line[0] + " " + (has_no_order(line) ? with_sorted_lines(reply) : reply));
  }

  // It has a client of its own, and nobody waits for it.
  void wait(Line line) {
    if (waiting_.size() == kWaitingMax) return;
    chance_stored_ = true;
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
  std::vector<std::string> told_;
  Scores scores_;
  bool chance_queued_ = false;  // maybe: by a client that has not sent EXEC
  bool chance_stored_ = false;  // what follows depends on chance
};

}  // namespace

void commands(std::string_view input) {
  Play small("4096");
  Play large("0");
  for (size_t lines = 0; lines < kLinesMax && !input.empty(); ++lines) {
    const size_t end = std::min(input.find('\n'), input.size());
    small.take(input.substr(0, end));
    large.take(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  const auto of_small = small.end();
  const auto of_large = large.end();
  INGOT_CHECK(of_small.size() == of_large.size());
  for (size_t i = 0; i < of_small.size(); ++i) {
    if (of_small[i] == of_large[i]) continue;
    std::fprintf(stderr, "in the record: %s\nalone: %s\n", of_small[i].c_str(),
                 of_large[i].c_str());
    INGOT_CHECK(of_small[i] == of_large[i]);
  }
}

}  // namespace ingot::fuzz

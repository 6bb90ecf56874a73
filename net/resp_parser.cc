// The incremental parser. It keeps Redis' habits where clients can see them: lengths are decimal
// without leading zeros, a line ends at CR whatever the byte after it is, and the two bytes behind
// an argument are not looked at.
#include "net/resp_parser.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>
#include <utility>

#include "net/batch_pool.h"
#include "net/inline_args.h"

namespace ingot::net {
namespace {

constexpr size_t kLineBytesMax = 64 * 1024;
constexpr int64_t kArgumentsMax = INT_MAX;
constexpr int64_t kUnauthenticatedArgumentsMax = 10;
constexpr int64_t kUnauthenticatedBulkBytesMax = 16 * 1024;
// Reading into less than this is not worth a system call, unless it completes an argument.
constexpr size_t kRoomBytesMin = 2 * 1024;
// Of a refused command's name; no command's is longer.
constexpr size_t kNameBytesMax = 128;

// A number as Redis takes it: "0", or an optional minus and digits without a leading zero.
bool parse_length(std::string_view text, int64_t& value) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') {
    value = text[0] - '0';
    return true;
  }
  const size_t sign = !text.empty() && text[0] == '-' ? 1 : 0;
  if (text.size() == sign || text[sign] < '1' || text[sign] > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

RespParser::~RespParser() {
  reset();
}

std::span<char> RespParser::prepare(size_t read_bytes) {
  if (!batch_) {
    batch_ = BatchPool::take(read_bytes);
    return {data(), batch_->buffer_capacity};
  }
  if (refused_) {
    // Behind its name stands what is not parsed, and nothing else.
    const size_t name_end =
        first_arg_ < batch_->arg_store.size() ? batch_->arg_store.back().size() : 0;
    std::memmove(data() + name_end, data() + pos_, unparsed());
    end_ -= pos_ - name_end;
    pos_ = name_end;
  }
  const size_t capacity = batch_->buffer_capacity;
  const size_t held = end_ - command_start_;
  size_t room_wanted = kRoomBytesMin;
  size_t useful = SIZE_MAX;
  if (bulk_bytes_ >= 0 && !refused_) {
    const size_t whole = pos_ - command_start_ + static_cast<size_t>(bulk_bytes_) + 2;
    room_wanted = std::min(room_wanted, whole - held);
    if (args_left_ == 1) useful = whole + kRoomBytesMin;
  }
  if (capacity - end_ < room_wanted) {
    // Growth follows the bytes that came, so a length that was only announced costs nothing.
    const size_t grown = std::max(held + room_wanted, std::min(2 * capacity, useful));
    auto old =
        std::exchange(batch_, BatchPool::take(capacity - held < room_wanted ? grown : capacity));
    move_tail(*old, *batch_);
    BatchPool::give_back(std::move(old));
  }
  return {data() + end_, batch_->buffer_capacity - end_};
}

RespParser::Status RespParser::parse(const ParseLimits& limits) {
  if (error_is_final_) return Status::kError;
  error_.clear();
  while (batch_ && pos_ < end_) {
    Step step;
    if (args_left_ > 0) {
      step = parse_argument(limits);
    } else {
      step = data()[pos_] == '*' ? parse_count(limits) : parse_inline();
    }
    if (step == Step::kNeedMore) break;
    if (step == Step::kLargeArgument) return Status::kLargeArgument;
    if (step == Step::kError) return Status::kError;
  }
  return Status::kNeedMore;
}

RespParser::Step RespParser::parse_inline() {
  char* const begin = data() + pos_;
  auto* const newline = static_cast<char*>(std::memchr(begin, '\n', unparsed()));
  if (newline == nullptr) {
    return unparsed() > kLineBytesMax ? fail("too big inline request") : Step::kNeedMore;
  }
  char* const line_end = newline > begin && newline[-1] == '\r' ? newline - 1 : newline;
  std::vector<std::string_view> args;
  if (!split_inline(begin, line_end, args)) return fail("unbalanced quotes in request");
  for (const std::string_view arg : args) push_argument(arg);
  pos_ += static_cast<size_t>(newline - begin) + 1;
  complete_command();
  return Step::kAgain;
}

// Sets `line` to what is between the first byte and CR, without moving on.
RespParser::Step RespParser::read_line(std::string_view too_long, std::string_view& line) {
  const char* const begin = data() + pos_;
  const auto* const cr = static_cast<const char*>(std::memchr(begin, '\r', unparsed()));
  if (cr == nullptr) return unparsed() > kLineBytesMax ? fail(too_long) : Step::kNeedMore;
  if (cr + 1 == data() + end_) return Step::kNeedMore;
  line = {begin, cr};
  return Step::kAgain;
}

RespParser::Step RespParser::parse_count(const ParseLimits& limits) {
  std::string_view line;
  const Step step = read_line("too big mbulk count string", line);
  if (step != Step::kAgain) return step;
  int64_t count = 0;
  if (!parse_length(line.substr(1), count) || count > kArgumentsMax) {
    return fail("invalid multibulk length");
  }
  if (count > kUnauthenticatedArgumentsMax && !limits.authenticated) {
    return fail("unauthenticated multibulk length");
  }
  pos_ += line.size() + 2;
  if (count > 0) {
    args_left_ = count;
  } else {
    complete_command();  // "*0" and "*-1" are passed over
  }
  return Step::kAgain;
}

RespParser::Step RespParser::parse_bulk_length(const ParseLimits& limits) {
  std::string_view line;
  const Step step = read_line("too big bulk count string", line);
  if (step != Step::kAgain) return step;
  const char type = data()[pos_];
  if (type != '$') return fail(std::string("expected '$', got '") + type + "'");
  int64_t bytes = 0;
  if (!parse_length(line.substr(1), bytes) || bytes < 0 ||
      static_cast<uint64_t>(bytes) > limits.bulk_bytes_max) {
    return fail("invalid bulk length");
  }
  if (bytes > kUnauthenticatedBulkBytesMax && !limits.authenticated) {
    return fail("unauthenticated bulk length");
  }
  pos_ += line.size() + 2;
  bulk_bytes_ = bytes;
  if (refused_) {
    pass_over_ = static_cast<uint64_t>(bytes) + 2;
    return Step::kAgain;
  }
  // A command has one sink; a second large argument is gathered.
  large_decided_ = static_cast<uint64_t>(bytes) < kLargeArgumentBytes || sink_ != nullptr ||
                   first_arg_ == batch_->arg_store.size();
  return Step::kAgain;
}

RespParser::Step RespParser::parse_argument(const ParseLimits& limits) {
  if (bulk_bytes_ < 0) {
    const Step step = parse_bulk_length(limits);
    if (step != Step::kAgain) return step;
  }
  if (refused_) return pass_over_argument();
  if (!large_decided_) return Step::kLargeArgument;
  const auto bytes = static_cast<size_t>(bulk_bytes_);
  if (unparsed() < bytes + 2) return Step::kNeedMore;
  push_argument({data() + pos_, bytes});
  pos_ += bytes + 2;
  bulk_bytes_ = -1;
  if (--args_left_ == 0) complete_command();
  return Step::kAgain;
}

RespParser::Step RespParser::pass_over_argument() {
  const size_t passed = std::min<uint64_t>(pass_over_, unparsed());
  pos_ += passed;
  pass_over_ -= passed;
  if (pass_over_ > 0) return Step::kNeedMore;
  bulk_bytes_ = -1;
  if (--args_left_ == 0) complete_command();
  return Step::kAgain;
}

void RespParser::refuse() {
  if (refused_ || args_left_ == 0) return;
  refused_ = true;
  std::string_view name;
  if (const auto args = arguments_so_far(); !args.empty() && args[0].size() <= kNameBytesMax) {
    name = args[0];
  }
  if (bulk_bytes_ >= 0) {
    const auto argument = static_cast<uint64_t>(bulk_bytes_) + 2;
    const size_t at_hand = std::min<uint64_t>(argument, unparsed());
    pos_ += at_hand;
    pass_over_ = argument - at_hand;
  }
  const std::string_view rest(data() + pos_, unparsed());
  auto fresh = BatchPool::take(std::max(kNameBytesMax + rest.size(), BatchPool::kSmallBytes));
  std::ranges::copy(name, fresh->buffer.get());
  std::ranges::copy(rest, fresh->buffer.get() + name.size());
  fresh->arg_store.emplace_back(fresh->buffer.get(), name.size());
  pos_ = name.size();
  end_ = name.size() + rest.size();
  command_start_ = first_arg_ = 0;
  BatchPool::give_back(std::exchange(batch_, std::move(fresh)));
  sink_.reset();
  diverted_index_ = 0;
}

RespParser::Step RespParser::fail(std::string_view text) {
  error_ = "ERR Protocol error: ";
  error_ += text;
  error_is_final_ = !text.starts_with("unauthenticated");
  return Step::kError;
}

void RespParser::push_argument(std::string_view arg) {
  auto& store = batch_->arg_store;
  if (store.size() < store.capacity()) {
    store.push_back(arg);
    return;
  }
  std::vector<std::string_view> grown;
  grown.reserve(std::max<size_t>(16, 2 * store.capacity()));
  grown.assign(store.begin(), store.end());
  grown.push_back(arg);
  for (Command& command : batch_->commands) {
    command.args = {grown.data() + (command.args.data() - store.data()), command.args.size()};
  }
  store = std::move(grown);
}

void RespParser::complete_command() {
  const auto& store = batch_->arg_store;
  if (store.size() > first_arg_) {
    batch_->commands.push_back({.args = {store.data() + first_arg_, store.size() - first_arg_},
                                .sink = std::move(sink_),
                                .diverted_index = std::exchange(diverted_index_, 0),
                                .refused = std::exchange(refused_, false)});
  }
  first_arg_ = store.size();
  command_start_ = pos_;
}

BatchPtr RespParser::take_batch() {
  auto full = std::move(batch_);
  if (const size_t tail = end_ - command_start_; tail > 0) {
    batch_ = BatchPool::take(tail);
    const size_t complete_args = first_arg_;
    move_tail(*full, *batch_);
    full->arg_store.resize(complete_args);
  } else {
    command_start_ = pos_ = end_ = first_arg_ = 0;
  }
  return BatchPool::share(std::move(full));
}

void RespParser::move_tail(const CommandBatch& from, CommandBatch& to) {
  const char* const start = from.buffer.get() + command_start_;
  std::memcpy(to.buffer.get(), start, end_ - command_start_);
  for (size_t i = first_arg_; i < from.arg_store.size(); ++i) {
    const std::string_view arg = from.arg_store[i];
    to.arg_store.emplace_back(to.buffer.get() + (arg.data() - start), arg.size());
  }
  pos_ -= command_start_;
  end_ -= command_start_;
  command_start_ = first_arg_ = 0;
}

std::span<const std::string_view> RespParser::arguments_so_far() const {
  return std::span(batch_->arg_store).subspan(first_arg_);
}

void RespParser::divert(std::shared_ptr<ArgumentSink> sink) {
  sink_ = std::move(sink);
  diverted_index_ = static_cast<uint32_t>(batch_->arg_store.size() - first_arg_);
  bulk_bytes_ = 0;  // what stays in the stream of it: an empty argument
  large_decided_ = true;
}

size_t RespParser::take_raw(size_t bytes_max, std::string& out) {
  const size_t taken = std::min(bytes_max, unparsed());
  out.append(data() + pos_, taken);
  std::memmove(data() + pos_, data() + pos_ + taken, unparsed() - taken);
  end_ -= taken;
  return taken;
}

void RespParser::release_if_empty() {
  if (batch_ && !refused_ && end_ == command_start_ && batch_->commands.empty()) reset();
}

void RespParser::reset() {
  if (batch_) {
    batch_->commands.clear();
    BatchPool::give_back(std::move(batch_));
  }
  command_start_ = pos_ = end_ = first_arg_ = 0;
  args_left_ = 0;
  bulk_bytes_ = -1;
  refused_ = false;
  sink_.reset();
}

size_t RespParser::held_bytes() const {
  if (!batch_) return 0;
  return end_ - command_start_ + arguments_so_far().size_bytes();
}

}  // namespace ingot::net

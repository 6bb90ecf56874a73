// Cutting a log into commands, those into units, and waiting for each job of them.
#include "src/exec/log_replay.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "src/access/users.h"
#include "src/contract/args.h"
#include "src/contract/client_registry.h"
#include "src/data/store.h"
#include "src/exec/at_once.h"
#include "src/exec/writer.h"

namespace ingot::exec {

namespace {

// Whoever wrote the log was allowed to.
access::AccountPtr all_powerful_account() {
  access::User user;
  user.enabled = user.nopass = true;
  user.root.all_keys = user.root.all_channels = true;
  user.root.all_commands = user.root.future_commands = true;
  user.root.commands.set();
  return std::make_shared<access::Account>("(log)", std::move(user));
}

constexpr size_t kArgumentsMax = 1 << 20;
constexpr size_t kArgumentBytesMax = 512u << 20;
constexpr size_t kUnitsMax = 1024;  // of one job

// The line `<mark><number>` at `at`; its end behind the line break. Nothing: `*incomplete` or bad.
std::optional<size_t> take_number(std::string_view bytes, size_t* at, char mark, bool* incomplete) {
  const size_t end = bytes.find("\r\n", *at);
  constexpr size_t kLineMax = 32;
  *incomplete = end == bytes.npos && bytes.size() - *at < kLineMax &&
                (*at == bytes.size() || bytes[*at] == mark);
  if (end == bytes.npos || bytes[*at] != mark) return std::nullopt;
  size_t number = 0;
  const char* const stop = bytes.data() + end;
  const auto [read, bad] = std::from_chars(bytes.data() + *at + 1, stop, number);
  if (bad != std::errc() || read != stop) return std::nullopt;
  *at = end + 2;
  return number;
}

}  // namespace

LogReplay::LogReplay(Services& services, Writer& writer)
    : services_(services),
      writer_(writer),
      client_(std::make_shared<contract::Client>(services.clients.next_id(), "", "", -1, false,
                                                 services.data.store.now_ms(),
                                                 all_powerful_account())),
      cutter_(services, client_->account(), 0),
      transaction_bytes_max_(UnitCutter::kTransactionShare *
                             services.data.bounds.transaction_bytes) {}

LogReplay::Cut LogReplay::cut(std::string_view bytes, Place* place) {
  place->args.clear();
  if (bytes.empty()) return Cut::kIncomplete;
  if (bytes[0] == '#') {  // a note of the time
    const size_t end = bytes.find("\r\n");
    if (end == bytes.npos) return Cut::kIncomplete;
    place->end = end + 2;
    return Cut::kWhole;
  }
  size_t at = 0;
  bool incomplete = false;
  const auto count = take_number(bytes, &at, '*', &incomplete);
  if (!count) return incomplete ? Cut::kIncomplete : Cut::kBad;
  if (*count == 0 || *count > kArgumentsMax) return Cut::kBad;
  for (size_t i = 0; i < *count; ++i) {
    const auto length = take_number(bytes, &at, '$', &incomplete);
    if (!length) return incomplete ? Cut::kIncomplete : Cut::kBad;
    if (*length > kArgumentBytesMax) return Cut::kBad;
    if (bytes.size() - at < *length + 2) return Cut::kIncomplete;
    if (bytes.substr(at + *length, 2) != "\r\n") return Cut::kBad;
    place->args.emplace_back(at, *length);
    at += *length + 2;
  }
  place->end = at;
  return Cut::kWhole;
}

// The next whole commands of what is held, in a batch of their own; `ends`: where each ends.
net::BatchPtr LogReplay::cut_batch(size_t* taken, std::vector<uint64_t>* ends) {
  std::vector<Place> places;
  size_t at = 0;
  size_t arguments = 0;
  Place place;
  while (places.size() < kUnitsMax) {
    const Cut is = cut(std::string_view(held_).substr(at), &place);
    if (is == Cut::kBad) {
      error_ = fmt::format("damaged at byte {}: there is no command", fed_before_ + at);
    }
    if (is != Cut::kWhole) break;
    for (auto& [offset, length] : place.args) offset += at;
    at += place.end;
    arguments += place.args.size();
    if (place.args.empty()) continue;
    ends->push_back(fed_before_ + at);
    places.push_back(std::move(place));
  }
  *taken = at;
  auto batch = std::make_shared<net::CommandBatch>();
  batch->buffer = std::make_unique<char[]>(at);
  batch->buffer_capacity = at;
  std::memcpy(batch->buffer.get(), held_.data(), at);
  batch->arg_store.reserve(arguments);
  for (const Place& each : places) {
    const size_t first = batch->arg_store.size();
    for (const auto& [offset, length] : each.args) {
      batch->arg_store.emplace_back(batch->buffer.get() + offset, length);
    }
    net::Command command;
    command.args = std::span(batch->arg_store).subspan(first);
    batch->commands.push_back(std::move(command));
  }
  return batch;
}

bool LogReplay::feed(std::string_view bytes) {
  held_.append(bytes);
  for (;;) {
    size_t taken = 0;
    std::vector<uint64_t> ends;
    const net::BatchPtr batch = cut_batch(&taken, &ends);
    std::vector<Unit> units;
    for (size_t i = 0; i < batch->commands.size(); ++i) {
      if (!take(batch, batch->commands[i], &units)) return false;
      if (!cutter_.in_multi()) whole_bytes_ = ends[i];
    }
    if (!run(std::move(units))) return false;
    held_.erase(0, taken);
    fed_before_ += taken;
    if (cutter_.in_multi() && fed_before_ - whole_bytes_ > transaction_bytes_max_) {
      error_ =
          fmt::format("the transaction behind byte {} is larger than memory allows ('maxmemory')",
                      whole_bytes_);
    }
    if (!error_.empty()) return false;
    if (taken == 0) return true;
  }
}

bool LogReplay::take(const net::BatchPtr& batch, const net::Command& command,
                     std::vector<Unit>* units) {
  ++commands_;
  using Step = UnitCutter::Step;
  switch (cutter_.take(batch, command)) {
    case Step::kUnit:
      units->push_back(cutter_.unit());
      units->back().replayed = true;
      return true;
    case Step::kNoDatabase:
      error_ = cutter_.error() + " to load it";
      return false;
    case Step::kUnknown:
      error_ = fmt::format("it has a command that is not known here: '{}'",
                           std::string(command.args[0].substr(0, 64)));
      return false;
    case Step::kNone:
    case Step::kMisplaced:  // which Redis answers an error
    case Step::kUntold:
      return true;
  }
  return true;
}

bool LogReplay::run(std::vector<Unit> units) {
  if (units.empty()) return true;
  auto job = std::make_unique<WriteJob>();
  job->client = client_;
  job->units = std::move(units);
  job->thread = &at_once();
  job->done = [this](contract::EncodedReply replies, bool) {
    std::lock_guard lock(mutex_);
    replies_ = std::move(replies);
    is_done_ = true;
    done_.notify_one();
  };
  writer_.submit(std::move(job));
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return is_done_; });
  is_done_ = false;
  const std::string refusal = find_refusal();
  if (refusal.empty()) return true;
  error_ = "it has a command that is refused here: " + refusal;
  return false;
}

// The first error for what disk, memory or scripts do not give here. A command that fails otherwise
// failed in Redis as well.
std::string LogReplay::find_refusal() const {
  const std::string_view bytes = replies_.bytes;
  auto body = replies_.bodies.begin();
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = bytes.find("\r\n", at);
    const std::string_view line = bytes.substr(at, end - at);
    for (const std::string_view refused : {"-MISCONF ", "-OOM ", "-EXECABORT ", "-NOSCRIPT "}) {
      if (line.starts_with(refused)) return std::string(line.substr(1));
    }
    at = end + 2;
    if (!line.starts_with('$') || line == "$-1") continue;
    if (body != replies_.bodies.end() && body->offset == at) {
      ++body;
    } else {
      std::from_chars(line.data() + 1, line.data() + line.size(), at);
      at += end + 2;
    }
    at += 2;
  }
  return {};
}

}  // namespace ingot::exec

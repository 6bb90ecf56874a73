// MIGRATE: keys move to another server. The pool sends them as they are at a view, while the writer
// serves others; then the writer removes those that are still as they were sent.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/resp_writer.h"
#include "net/sync_client.h"
#include "src/commands/dump_payload.h"
#include "src/commands/families.h"
#include "src/contract/errors.h"
#include "src/data/restored_value.h"

namespace ingot::commands {
namespace {

using types::Record;

constexpr std::string_view kWriteError = "IOERR error or timeout writing to target instance";
constexpr int64_t kDefaultTimeoutMs = 1000;
constexpr size_t kBatchBytes = 1 << 20;  // sent before the replies are waited for
// When keys change faster than they are sent, the writer sends them at last, where nothing changes.
constexpr int kAttemptsInPool = 4;

struct Request {
  std::string host;
  std::string port;
  int64_t db = 0;
  int64_t timeout_ms = 0;
  bool copy = false;
  bool replace = false;
  std::vector<std::string> auth;  // AUTH and its arguments; empty: none
  std::vector<std::string> keys;
};

// False when an error was answered.
bool parse(WriteContext& ctx, Args args, Request* request) {
  request->host = args[1];
  request->port = args[2];
  request->keys = {std::string(args[3])};
  ArgReader options(args, 6);
  while (options.more()) {
    if (options.word("copy")) {
      request->copy = true;
    } else if (options.word("replace")) {
      request->replace = true;
    } else if (options.word("auth")) {
      request->auth = {"AUTH", std::string(options.text())};
    } else if (options.word("auth2")) {
      request->auth = {"AUTH", std::string(options.text())};
      request->auth.emplace_back(options.text());
    } else if (options.word("keys")) {
      if (!args[3].empty()) {
        options.fail(
            "ERR When using MIGRATE KEYS option, the key argument must be set to the "
            "empty string");
      }
      const Args names = options.rest();
      request->keys.assign(names.begin(), names.end());
      break;
    } else {
      options.fail(contract::error::kSyntax);
    }
  }
  ArgReader numbers(args, 4);
  request->db = numbers.integer();
  request->timeout_ms = numbers.integer();
  if (request->timeout_ms <= 0) request->timeout_ms = kDefaultTimeoutMs;
  if (numbers.failed()) options.fail(numbers.error());
  if (options.failed()) ctx.reply.error(options.error());
  return !options.failed();
}

struct Sent {
  std::string record;  // of the key as it was sent; empty: it was not
  bool taken = false;  // the other server has it
};

struct Transfer : contract::PoolResult {
  std::vector<Sent> keys;  // those of the request
  std::string error;       // the first
  int attempts = 0;

  bool fail(std::string_view text) {
    if (error.empty()) error = text;
    return false;
  }
};

struct Restore {
  std::string_view name;
  int64_t ttl_ms;
  bool replace;
};

// The connection to the other server. Keys gather until they are worth a round trip.
class Carrier {
 public:
  Carrier(const Request& request, Transfer& transfer) : request_(request), transfer_(transfer) {}

  // Each is false when the connection has failed; the transfer says how.
  bool restore(Sent& sent, const Restore& key, std::string_view payload) {
    if (!begin_restore(sent, key, payload.size())) return false;
    batch_.append(payload);
    end_restore(key);
    return batch_.size() < kBatchBytes || flush();
  }

  // The string is read from `data`, where failures latch, and sent piece by piece.
  bool restore_long_string(Sent& sent, const Restore& key, storage::Reader& data,
                           const Record& record) {
    const uint64_t length = types::string_length(record);
    types::rdb::LongStringDump dump(length);
    if (!begin_restore(sent, key, dump.bytes())) return false;
    batch_.append(dump.head());
    std::string piece;
    for (uint64_t at = 0; at < length; at += piece.size()) {
      piece.clear();
      types::read_string(data, record, at, std::min<uint64_t>(kBatchBytes, length - at), &piece);
      // The other server waits for the rest, and has taken nothing.
      if (data.failed()) return transfer_.fail(contract::storage_error(data.error()));
      dump.pass(piece);
      batch_.append(piece);
      if (!send_batch()) return false;
    }
    batch_.append(dump.footer());
    end_restore(key);
    return flush();
  }

  bool flush() {
    if (!send_batch()) return false;
    for (Sent* sent : waiting_) {
      if (!read_status(&sent->taken)) return false;
    }
    waiting_.clear();
    return true;
  }

 private:
  bool begin_restore(Sent& sent, const Restore& key, uint64_t payload_bytes) {
    if (!connected_ && !connect()) return false;
    net::RespWriter writer(batch_, 2);
    writer.array(key.replace ? 5 : 4);
    writer.bulk("RESTORE");
    writer.bulk(key.name);
    writer.bulk(std::to_string(key.ttl_ms));
    batch_ += fmt::format("${}\r\n", payload_bytes);
    waiting_.push_back(&sent);
    return true;
  }

  void end_restore(const Restore& key) {
    batch_ += "\r\n";
    if (key.replace) net::RespWriter(batch_, 2).bulk("REPLACE");
  }

  bool send_batch() {
    if (!target_.send(batch_, request_.timeout_ms)) return transfer_.fail(kWriteError);
    batch_.clear();
    return true;
  }

  bool connect() {
    const int64_t port = contract::parse_integer(request_.port).value_or(0);
    auto reached = net::SyncClient::Reached::kNot;
    if (port >= 0 && port <= UINT16_MAX) {
      reached = target_.connect(request_.host, static_cast<uint16_t>(port), request_.timeout_ms);
    }
    if (reached == net::SyncClient::Reached::kNot) {
      return transfer_.fail("IOERR error or timeout connecting to the client");
    }
    // Redis notices a refusal only when it writes.
    if (reached == net::SyncClient::Reached::kRefused) return transfer_.fail(kWriteError);
    connected_ = true;
    bool accepted = true;
    if (!request_.auth.empty()) {
      append({request_.auth.begin(), request_.auth.end()});
      if (!flush() || !read_status(&accepted) || !accepted) return false;
    }
    append({"SELECT", std::to_string(request_.db)});
    return flush() && read_status(&accepted) && accepted;
  }

  void append(const std::vector<std::string_view>& words) {
    net::RespWriter writer(batch_, 2);
    writer.array(words.size());
    for (std::string_view word : words) writer.bulk(word);
  }

  bool read_status(bool* accepted) {
    std::string status;
    if (!target_.read_line(&status, request_.timeout_ms)) {
      return transfer_.fail("IOERR error or timeout reading to target instance");
    }
    *accepted = !status.starts_with('-');
    if (!*accepted) transfer_.fail("ERR Target instance replied with error: " + status.substr(1));
    return true;
  }

  const Request& request_;
  Transfer& transfer_;
  net::SyncClient target_;
  bool connected_ = false;
  std::string batch_;
  std::vector<Sent*> waiting_;  // in `batch_`
};

// Sends what the other server does not have yet, as it is now. `earlier` may be null.
std::shared_ptr<Transfer> send_keys(const settings::Config& config, uint64_t held_max,
                                    types::KeyReader& keys, int db, const Request& request,
                                    const Transfer* earlier) {
  auto transfer = std::make_shared<Transfer>();
  if (earlier != nullptr) *transfer = *earlier;
  transfer->keys.resize(request.keys.size());
  ++transfer->attempts;
  Carrier carrier(request, *transfer);
  // Sending takes a while, and what is left to live shrinks meanwhile.
  const auto now_ms = [began = std::chrono::steady_clock::now(), start_ms = keys.now_ms()] {
    const auto passed = std::chrono::steady_clock::now() - began;
    return start_ms + std::chrono::duration_cast<std::chrono::milliseconds>(passed).count();
  };
  for (size_t i = 0; i < request.keys.size(); ++i) {
    Record record;
    if (!keys.peek(db, request.keys[i], &record)) continue;
    Sent& sent = transfer->keys[i];
    std::string bytes = record.bytes();
    if (sent.taken && sent.record == bytes) continue;
    // What an earlier attempt brought there is ours to replace.
    const bool replace = request.replace || sent.taken;
    sent = {.record = std::move(bytes)};
    const int64_t ttl_ms =
        record.expire_ms() == 0 ? 0 : std::max<int64_t>(1, record.expire_ms() - now_ms());
    const Restore restore{.name = request.keys[i], .ttl_ms = ttl_ms, .replace = replace};
    if (is_long_string(record)) {
      if (carrier.restore_long_string(sent, restore, keys.data(), record)) continue;
      keys.data().reset_outcome();
      return transfer;
    }
    const auto payload = dump_payload(config, keys, record, held_max);
    if (keys.data().failed()) break;
    if (!payload) {
      transfer->fail(contract::kOutOfMemory);
      break;
    }
    if (!carrier.restore(sent, restore, *payload)) return transfer;
  }
  if (!carrier.flush()) return transfer;
  if (keys.data().failed()) {
    // The transfer tells, because what the other server has taken is to be removed all the same.
    transfer->fail(contract::storage_error(keys.data().error()));
    keys.data().reset_outcome();
  }
  return transfer;
}

// Whether there is nothing more to send.
bool is_complete(WriteContext& ctx, const Request& request, const Transfer& transfer) {
  if (!transfer.error.empty()) return true;
  // A copy is of one moment, which may have passed; only a transaction copies what itself has made.
  if (request.copy && ctx.may_block) return true;
  for (size_t i = 0; i < request.keys.size(); ++i) {
    Record record;
    if (!ctx.keys.peek(ctx.db, request.keys[i], &record)) continue;
    if (record.bytes() != transfer.keys[i].record) return false;
  }
  return true;
}

void remove_sent(WriteContext& ctx, const Request& request, const Transfer& transfer) {
  std::vector<std::string_view> told = {"DEL"};
  for (size_t i = 0; i < request.keys.size(); ++i) {
    const Sent& sent = transfer.keys[i];
    Record record;
    if (!sent.taken || !ctx.keys.peek(ctx.db, request.keys[i], &record)) continue;
    if (record.bytes() != sent.record) continue;
    ctx.keys.remove(ctx.db, request.keys[i], record);
    ctx.keys.notify(types::notify::kGeneric, "del", ctx.db, request.keys[i]);
    told.push_back(request.keys[i]);
  }
  if (told.size() > 1) ctx.tell(told);
}

void migrate(WriteContext& ctx, Args args) {
  Request request;
  if (!parse(ctx, args, &request)) return;
  const auto earlier = std::dynamic_pointer_cast<Transfer>(ctx.earlier);
  const bool any_here = std::ranges::any_of(request.keys, [&](const std::string& name) {
    Record record;
    return ctx.keys.find(ctx.db, name, &record);
  });
  if (!earlier && !any_here) return ctx.reply.simple("NOKEY");
  const int attempts = earlier ? earlier->attempts : 0;
  // A transaction may see what no view does, so there its tries decide.
  const bool here = ctx.in_place && (!ctx.may_block || attempts >= kAttemptsInPool);
  const auto transfer = ctx.from_pool<Transfer>(
      [&](const Transfer& sent) { return is_complete(ctx, request, sent); },
      [&config = ctx.config, held_max = data::held_value_max(ctx.data), db = ctx.db, request,
       earlier](types::KeyReader& keys) {
        return send_keys(config, held_max, keys, db, request, earlier.get());
      },
      here);
  if (!transfer) return;
  if (!request.copy) remove_sent(ctx, request, *transfer);
  if (!transfer->error.empty()) return ctx.reply.partial_error(transfer->error);
  const bool any_sent =
      std::ranges::any_of(transfer->keys, [](const Sent& sent) { return !sent.record.empty(); });
  any_sent ? ctx.reply.ok() : ctx.reply.simple("NOKEY");
}

constexpr contract::OptionWord kMigrateOptions[] = {{"auth", 1}, {"auth2", 2}};

constexpr CommandRow kTable[] = {
    {.name = "migrate",
     .arity = -6,
     .flags = flag::kWrite | flag::kMovableKeys,
     .acl = acl::kDangerous,
     .keys = {key_at(3, key::kRw | key::kAccess | key::kDelete),
              {.flags = key::kRw | key::kAccess | key::kDelete | key::kIncomplete,
               .keyword = "KEYS",
               .begin = -2,
               .last = -1,
               .options_begin = 6,
               .options = kMigrateOptions}},
     .since = "2.6.0",
     .complexity = "O(N) in the bytes of the values, and their way to the other server",
     .summary = "Move keys to another server",
     .history = "3.0.0: `COPY` and `REPLACE` are taken.; 3.0.6: `KEYS` is taken.; "
                "4.0.7: `AUTH` is taken.; 6.0.0: `AUTH2` is taken.",
     .tips = "nondeterministic_output",
     .arguments = "host:string port:integer key_or_empty_string:oneof(key:key#0 "
                  "empty_string:pure-token=\"\") destination-db:integer timeout:integer "
                  "copy:pure-token=COPY@3.0.0? replace:pure-token=REPLACE@3.0.0? "
                  "authentication:oneof?(password:string=AUTH@4.0.7? "
                  "username_password:block=AUTH2@6.0.0?(username:string password:string)) "
                  "key:key=KEYS#1@3.0.6?*",
     .handler = migrate},
};
constexpr auto kRows = contract::family(kGenericFamily, kTable);

}  // namespace

std::span<const CommandRow> migrate_rows() {
  return kRows;
}

}  // namespace ingot::commands

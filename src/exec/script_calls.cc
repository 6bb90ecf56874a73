// From a script's arguments to a command's run, and what is refused on the way.
#include "src/exec/script_calls.h"

#include <random>

#include "src/contract/args.h"
#include "src/contract/errors.h"
#include "src/contract/table.h"
#include "src/exec/following.h"
#include "storage/check.h"

namespace ingot::exec {

using contract::ReplySink;
using contract::ScriptCall;

namespace {

bool blocks(const contract::CommandRow& row, contract::Args args) {
  const std::string_view name = contract::listed_row(row).name;
  if (name != "xread" && name != "xreadgroup") return false;
  for (const std::string_view arg : args.subspan(1)) {
    if (contract::equals_ignore_case(arg, "streams")) return false;
    if (contract::equals_ignore_case(arg, "block")) return true;
  }
  return false;
}

}  // namespace

bool BoundedSink::has_room(size_t bytes) {
  if (too_large_) return false;
  if (out_.bytes.size() + bytes <= bytes_max_) return true;
  refuse();
  return false;
}
void BoundedSink::refuse() {
  too_large_ = true;
  data_.latch_error({storage::Status::Code::kInvalid, "a reply is too large for a script"});
}

void BoundedSink::simple(std::string_view text) {
  if (has_room(text.size())) RespSink::simple(text);
}
void BoundedSink::integer(int64_t value) {
  if (has_room(sizeof(value))) RespSink::integer(value);
}
void BoundedSink::bulk(std::string_view bytes) {
  if (has_room(bytes.size())) RespSink::bulk(bytes);
}
void BoundedSink::null() {
  if (has_room(0)) RespSink::null();
}
void BoundedSink::real(double value) {
  if (has_room(sizeof(value))) RespSink::real(value);
}
void BoundedSink::array(uint64_t count) {
  if (has_room(sizeof(count))) RespSink::array(count);
}
// A command that streams to who keeps its reply is undone: nobody would get what it has taken.
void BoundedSink::stream(contract::Stream) {
  refuse();
}
void BoundedSink::elements(std::unique_ptr<net::BodySource>) {
  refuse();
}

std::string ScriptCalls::refusal(const contract::Resolved& resolved,
                                 const std::string& resolve_error, const ScriptCall& script) const {
  if (resolved.row == nullptr) return "ERR Unknown Redis command called from script";
  if (!resolve_error.empty()) return "ERR Wrong number of args calling Redis command from script";
  const uint32_t flags = resolved.row->flags;
  if ((flags & contract::flag::kNoScript) != 0) {
    return "ERR This Redis command is not allowed from script";
  }
  // One string may stand there a thousand times.
  size_t bytes = 0;
  for (const std::string_view arg : script.args) bytes += arg.size();
  if (bytes > services_.data.bounds.transaction_bytes) return contract::kOutOfMemory;
  // A dry run answers nobody, and would only be noted in ACL LOG.
  if (place() != Place::kDry) {
    std::string denied = script_error(services_, *account_, caller_.id, *resolved.row, script.args);
    if (!denied.empty()) return denied;
  }
  constexpr std::string_view kRefused =
      "ERR Write commands are not allowed from read-only scripts.";
  constexpr uint32_t kChanges = contract::flag::kWrite | contract::flag::kMayReplicate;
  if (script.no_writes && (flags & kChanges) != 0) return std::string(kRefused);
  if (blocks(*resolved.row, script.args)) {
    return "ERR " + std::string(script.args[0]) +
           " command is not allowed with BLOCK option from scripts";
  }
  if (services_.following.is_stale() && (flags & contract::flag::kStale) == 0) {
    return "ERR Can not execute the command on a stale replica";
  }
  // PFCOUNT keeps its estimate in the value.
  if (script.no_writes && contract::is_write(*resolved.row)) return std::string(kRefused);
  if (account_->is_unrestricted()) return {};
  return unnamed_keys_error(services_, *account_->user(), *resolved.row, script.args);
}

std::string ScriptCalls::begin_refusal(bool may_write, bool allows_stale) const {
  const Following& following = services_.following;
  if (following.is_stale() && !allows_stale) return kMasterDown;
  if (!may_write || caller_.is_master) return {};
  if (following.refuses_writes()) return kReadOnly;
  if (!following.asked && services_.replicas.lacks_some(services_.data.store.now_ms())) {
    return contract::kTooFewReplicas;
  }
  return {};
}

bool ScriptCalls::call(const ScriptCall& script, std::string* reply) {
  contract::EncodedReply encoded;
  encoded.bytes = std::move(*reply);
  encoded.bytes.clear();
  BoundedSink sink(encoded, script.resp, services_.data.bounds.transaction_bytes, data_);
  std::string resolve_error;
  const contract::Resolved resolved = services_.table.resolve(script.args, &resolve_error);
  bool goes_on = true;
  if (const std::string error = refusal(resolved, resolve_error, script); !error.empty()) {
    count_rejected(services_, resolved.row, error);
    sink.error(error);
  } else {
    const contract::CommandRow& row = *resolved.row;
    const net::Command command{.args = script.args, .sink = nullptr};
    const Call call{.row = row, .command = command, .db = db_, .client_id = caller_.id};
    if ((row.flags & contract::flag::kWrite) != 0 && !script.run.begin_write()) return false;
    if (contract::is_session(row)) {
      run_session(call, script.resp, sink);
    } else {
      goes_on = run(call, script, sink);
    }
    if (sink.too_large()) {
      data_.reset_outcome();
      encoded.clear();
      contract::RespSink(encoded, script.resp).error(contract::kOutOfMemory);
      goes_on = true;
    }
  }
  *reply = std::move(encoded.bytes);
  return goes_on;
}

void ScriptCalls::run_session(const Call& call, int resp, ReplySink& reply) {
  if (client_ == nullptr) {
    client_ = std::make_unique<contract::Client>(caller_.id, caller_.address, caller_.local_address,
                                                 caller_.fd, caller_.is_unix, caller_.created_ms,
                                                 account_);
    client_->authenticated = true;
  }
  client_->db = db_;
  client_->resp = resp;
  Accounting accounting(services_, {.row = call.row,
                                    .command = call.command,
                                    .client = caller_,
                                    .db = call.db,
                                    .in_script = true,
                                    .notices = notices_});
  exec::run_session(services_, call, *client_, reply, /*in_exec=*/true);
  if (place() != Place::kDry) accounting.kept(reply, nullptr);
  db_ = client_->db;
}

uint64_t ScriptCalls::seed() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

std::optional<bool> ScriptCalls::allows(contract::Args args) const {
  std::string error;
  const contract::Resolved resolved = services_.table.resolve(args, &error);
  if (resolved.row == nullptr) return std::nullopt;
  if (account_->is_unrestricted()) return true;
  return access::check(*account_->user(), services_.users.ids(), *resolved.row, args).is_allowed();
}

bool ReadCalls::run(const Call& call, const ScriptCall&, ReplySink& reply) {
  INGOT_CHECK(contract::is_read(call.row));  // what writes has been refused
  Accounting accounting(services_, {.row = call.row,
                                    .command = call.command,
                                    .client = caller_,
                                    .db = call.db,
                                    .in_script = true,
                                    .notices = notices_});
  run_read(services_, call, nullptr, keys_, reply);
  if (keys_.data().failed()) return false;
  accounting.kept(reply, &keys_);
  services_.couriers.release_too_many(notices_);
  keys_.hits = keys_.misses = 0;
  keys_.missed.clear();
  return true;
}

bool DryCalls::run(const Call& call, const ScriptCall&, ReplySink& reply) {
  const Earlier dry{.result = nullptr, .is_dry = true, .fed = {}};
  if (contract::is_read(call.row)) {
    run_read(services_, call, nullptr, sandbox_.keys(), reply);
  } else {
    // Without what it wants from the pool it has no reply.
    if (run_write(services_, call, dry, sandbox_.keys(), reply).work) return false;
  }
  return !sandbox_.overlay().failed() &&
         sandbox_.overlay().bytes() <= services_.data.bounds.changes_bytes;
}

}  // namespace ingot::exec

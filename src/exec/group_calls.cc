// Refusals and undoing of single commands, and what they want from the pool.
#include "src/exec/group_calls.h"

#include <algorithm>

#include "src/contract/errors.h"

namespace ingot::exec {

using contract::ScriptCall;

// Each trip runs the script once more, from its beginning: then the writer does the work itself.
constexpr size_t kPoolTripsMax = 16;

// A script that has begun to write goes on, however much memory is used by others.
const std::string* GroupCalls::refusal(const contract::CommandRow& row,
                                       const ScriptCall& script) const {
  static const std::string kTooMuch = contract::kOutOfMemory;
  const bool writes = (row.flags & contract::flag::kWrite) != 0;
  const bool tells = (row.flags & contract::flag::kMayReplicate) != 0;
  const bool is_full = held_bytes() - bytes_before_ > services_.data.bounds.changes_bytes;
  if (is_full && (writes || tells)) return &kTooMuch;
  if (!writes) return nullptr;
  const std::string* refusal = refusal_for(row, refusals_);
  if (refusal == nullptr || !refusal->starts_with("OOM")) return refusal;
  return script.allow_oom || has_written_ ? nullptr : refusal;
}

uint64_t GroupCalls::seed() {
  if (unit_.seed == 0) unit_.seed = ScriptCalls::seed() | 1;
  return unit_.seed + place_;
}

bool GroupCalls::run(const Call& call, const ScriptCall& script, contract::ReplySink& reply) {
  ++place_;
  const bool is_counted = place_ <= unit_.counted;
  if (const std::string* refused = refusal(call.row, script)) {
    if (!is_counted) count_rejected(services_, &call.row, *refused);
    unit_.counted = std::max(unit_.counted, place_);
    reply.error(*refused);
    return true;
  }
  const PoolOutcome& from_pool = pool_outcome(unit_, place_);
  if (!from_pool.status.ok()) {
    reply.error(contract::storage_error(from_pool.status));
    return true;
  }
  const Group::Savepoint before = group_.savepoint();
  keys_.hits = keys_.misses = 0;
  keys_.missed.clear();
  Accounting accounting(services_, {.row = call.row,
                                    .command = call.command,
                                    .client = caller_,
                                    .db = call.db,
                                    .in_script = true,
                                    .is_counted = is_counted,
                                    .notices = group_.effects_.notices});
  if (contract::is_write(call.row)) {
    Earlier earlier = earlier_runs(unit_, place_);
    earlier.may_block = false;
    earlier.is_told = script.is_told;
    earlier.in_place = earlier.in_place || unit_.from_pool.size() >= kPoolTripsMax;
    wish_ = run_write(services_, call, earlier, keys_, reply);
    if (wish_.work) {
      // What the pool does outlives the strings of the script: it is asked again for, with
      // arguments that live as long as the unit.
      group_.rollback(before);
      unit_.arguments.push_back(net::copy_of(call.command));
      const Call lasting = {.row = call.row,
                            .command = unit_.arguments.back()->commands.front(),
                            .db = call.db,
                            .client_id = call.client_id};
      wish_ = run_write(services_, lasting, earlier, keys_, reply);
      wish_.place = place_;
    }
    if (wish_.work) return false;
  } else {
    run_read(services_, call, nullptr, keys_, reply);
  }
  if (keys_.data().failed()) {
    // Of a reply that is too large nothing is kept, and the script goes on.
    if (!keys_.data().missed()) group_.rollback(before);
    return false;
  }
  if (reply.undoes()) group_.rollback(before);
  // As in Redis: once it reads anything, it has read all that it declared.
  const bool reads = (call.row.flags & contract::flag::kReadonly) != 0;
  if (reads && unit_.remembers_reads && !std::exchange(has_remembered_, true)) {
    group_.remember_keys(script_.row, script_.command.args, caller_);
  }
  has_written_ = has_written_ || (call.row.flags & contract::flag::kWrite) != 0;
  accounting.kept(reply, &keys_);
  unit_.counted = std::max(unit_.counted, place_);
  return true;
}

}  // namespace ingot::exec

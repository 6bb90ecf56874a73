// What is checked before a command runs, and where it runs.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "src/contract/errors.h"
#include "src/contract/replicas.h"
#include "src/exec/accounting.h"
#include "src/exec/client_pause.h"
#include "src/exec/following.h"
#include "src/exec/handlers.h"
#include "src/exec/prefetch.h"
#include "src/exec/session.h"
#include "src/metrics/log.h"
#include "src/script/scripts.h"
#include "src/settings/config.h"

namespace ingot::exec {

using contract::CommandRow;
using contract::is_exec;
using contract::QueuedCommand;

namespace {

constexpr std::string_view kNotQueued[] = {"exec", "discard", "multi", "watch", "quit", "reset"};

bool runs_inside_multi(const contract::Resolved& resolved) {
  if (resolved.parent != nullptr) return false;
  return std::ranges::find(kNotQueued, resolved.row->name) != std::end(kNotQueued);
}

// A browser that was lured into sending commands: Redis hangs up on it, and so do we.
bool is_http(std::string_view name) {
  return contract::equals_ignore_case(name, "post") || contract::equals_ignore_case(name, "host:");
}

// Once a minute at most.
void warn_of_http(std::string_view address, int64_t now_ms) {
  static std::atomic<int64_t> warned_ms{0};
  const int64_t last = warned_ms;
  if (last != 0 && now_ms >= last && now_ms - last < 60'000) return;
  warned_ms = now_ms;
  metrics::log::warning(
      "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands "
      "to Ingot. This is likely due to an attacker attempting to use Cross Protocol Scripting to "
      "compromise your Ingot instance. Connection from {} aborted.",
      address);
}

std::string guarded_error(std::string_view command, std::string_view setting) {
  return fmt::format(
      "ERR {} command not allowed. If the {} option is set to \"local\", you can run it from a "
      "local connection, otherwise you need to set this option in the configuration file, and then "
      "restart the server.",
      command, setting);
}

}  // namespace

bool Session::silent() const {
  return contract::is_silent(client_->reply_mode) || client_->follows;
}

// CLIENT REPLY SKIP counts commands; CLIENT CACHING lasts over the other subcommands of CLIENT, and
// to the end of a transaction.
void Session::after_command(bool is_about_client) {
  if (!is_about_client && !client_->in_multi && client_->tracking != 0) {
    client_->tracking.fetch_and(~contract::tracks::kCaching);
  }
  using contract::ReplyMode;
  if (client_->reply_mode == ReplyMode::kSkipThis) client_->reply_mode = ReplyMode::kOn;
  if (client_->reply_mode == ReplyMode::kSkipNext) client_->reply_mode = ReplyMode::kSkipThis;
}

bool Session::was_about_client() const {
  return client_->last_subcommand != nullptr && client_->last_command.load()->name == "client";
}

void Session::note_command(const contract::Resolved& resolved) {
  client_->last_command.store(resolved.parent != nullptr ? resolved.parent : resolved.row,
                              std::memory_order_relaxed);
  client_->last_subcommand.store(resolved.parent != nullptr ? resolved.row : nullptr,
                                 std::memory_order_relaxed);
}

// As if the command had run, with this error or well.
void Session::answer_at_once(const QueuedCommand& queued, std::string_view error) {
  contract::EncodedReply reply;
  contract::RespSink sink(reply, client_->resp);
  types::Notices notices;
  Accounting accounting(services_, {.row = *queued.row,
                                    .command = *queued.command,
                                    .client = *client_,
                                    .db = client_->db,
                                    .notices = notices});
  error.empty() ? sink.ok() : sink.error(error);
  accounting.kept(sink, nullptr);
  if (!silent()) answer(std::move(reply));
  tell(std::move(notices));
}

Session::Step Session::dispatch(const net::BatchPtr& batch, const net::Command& command) {
  std::string resolve_error;
  contract::Resolved resolved = services_.table.resolve(command.args, &resolve_error);
  if (resolved.row == nullptr && is_http(command.args[0])) {
    warn_of_http(client_->address, now_ms_);
    closing_ = true;
    connection_->close();
    return Step::kTaken;
  }
  const bool restricted = !client_->own_account().is_unrestricted();
  // Whoever deleted the user ends the connection, or has it already.
  if (restricted && client_->own_account().is_deleted()) {
    closing_ = true;
    connection_->close();
    return Step::kTaken;
  }
  note_command(resolved);
  QueuedCommand queued{.row = resolved.row, .batch = batch, .command = &command};
  std::string error = command.refused ? contract::kOutOfMemory : refusal(resolved, resolve_error);
  if (restricted && error.empty() && check_permission(queued, &error) == Step::kWait) {
    return Step::kWait;
  }
  if (error.empty()) error = subscriber_refusal(resolved);
  if (error.empty()) error = replica_refusal(*resolved.row);
  if (!error.empty()) {
    // An EXEC that is refused forgets what was watched: WATCH first.
    if (watching_ && resolved.row != nullptr && is_exec(*resolved.row) && !idle()) {
      return Step::kWait;
    }
    reject(resolved.row, error);
    after_command();
    return Step::kTaken;
  }
  const bool is_about_client = resolved.parent != nullptr && resolved.parent->name == "client";
  if (resolved.row->if_script_reads != nullptr) {
    const CommandRow* reading = resolved.row->if_script_reads(services_.scripts, command.args);
    if (reading != nullptr) queued.row = resolved.row = reading;
  }
  if (services_.pause.is_on() && is_held_back(queued)) {
    checked_.reset();  // what it may do is asked when it runs
    return Step::kWait;
  }
  if (client_->in_multi && !runs_inside_multi(resolved)) {
    enqueue_in_multi(queued);
    after_command();
    return Step::kTaken;
  }
  if (restricted) error = unreadable_error(queued);
  if (!error.empty()) {
    answer_at_once(queued, error);
    after_command();
    return Step::kTaken;
  }
  Step step = route(queued);
  if (step == Step::kTaken && !exclusive_) after_command(is_about_client);
  return step;
}

// Why the client may not call what is guarded; empty: it may.
std::string Session::guard_error(contract::Guard guard) const {
  const auto settings = services_.data.config.settings();
  const bool debugs = guard == contract::Guard::kDebug;
  const auto permission = debugs ? settings->enable_debug_command : settings->enable_module_command;
  const bool allowed = permission == settings::Permission::kYes ||
                       (permission == settings::Permission::kLocal && client_->is_local());
  if (allowed) return {};
  return debugs ? guarded_error("DEBUG", "enable-debug-command")
                : guarded_error("MODULE", "enable-module-command");
}

// How much the client may send depends on whether it had to authenticate, and has.
void Session::tell_connection() {
  if (connection_ == nullptr) return;
  connection_->set_authenticated(client_->authenticated ||
                                 !services_.users.default_account()->needs_password());
}

std::string Session::refusal(const contract::Resolved& resolved, const std::string& resolve_error) {
  if (!resolve_error.empty()) return resolve_error;
  if (const auto guard = resolved.row->guard; guard != contract::Guard::kNone) {
    if (std::string error = guard_error(guard); !error.empty()) return error;
  }
  uint32_t flags = resolved.row->flags;
  if (!client_->authenticated) {
    tell_connection();
    if (services_.users.default_account()->needs_password() &&
        (flags & contract::flag::kNoAuth) == 0) {
      return "NOAUTH Authentication required.";
    }
  }
  if (client_->in_multi && (flags & contract::flag::kNoMulti) != 0) {
    return "ERR Command not allowed inside a transaction";
  }
  if (client_->debugs_scripts && resolved.row->name.starts_with("eval")) {
    return "ERR Ingot has no debugger for scripts";
  }
  if ((flags & contract::flag::kLoading) == 0 && services_.loading.on) {
    return "LOADING Redis is loading the dataset in memory";
  }
  if ((flags & contract::flag::kAllowBusy) == 0 && services_.scripts.holds_writer()) {
    return std::string(services_.scripts.busy(client_->id));
  }
  const bool leads = !services_.following.asked.load(std::memory_order_relaxed);
  if ((flags & contract::flag::kWrite) != 0 && leads && services_.replicas.lacks_some(now_ms_)) {
    return contract::kTooFewReplicas;
  }
  // Redis takes a monitor for a replica.
  constexpr uint32_t kOfData =
      contract::flag::kWrite | contract::flag::kReadonly | contract::flag::kMayReplicate;
  if ((client_->is_monitor() || client_->follows) && (flags & kOfData) != 0) {
    return "ERR Replica can't interact with the keyspace";
  }
  return {};
}

// Behind what the client may do at all, which is noted when it may not.
std::string Session::subscriber_refusal(const contract::Resolved& resolved) const {
  if (resolved.row->from_subscribers || client_->resp != 2 || !client_->is_subscriber()) return {};
  return "ERR Can't execute '" + contract::full_name(resolved.parent, *resolved.row) +
         "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
         "context";
}

// What a server that follows another does not do for clients.
std::string Session::replica_refusal(const CommandRow& row) const {
  const Following& following = services_.following;
  if (!following.asked.load(std::memory_order_relaxed)) return {};
  const auto any = [&](const auto& is) {
    const bool queued = is_exec(row) && std::ranges::any_of(client_->queue, [&](const auto& each) {
                          return is(*each.row);
                        });
    return queued || is(row);
  };
  const auto writes = [](const CommandRow& each) {
    return (each.flags & contract::flag::kWrite) != 0;
  };
  if (following.refuses_writes() && any(writes)) return kReadOnly;
  const auto needs_fresh = [](const CommandRow& each) {
    return (each.flags & contract::flag::kStale) == 0;
  };
  if (following.is_stale() && any(needs_fresh)) return kMasterDown;
  return {};
}

// Refuses a command before it ran; inside MULTI that spoils the transaction.
void Session::reject(const CommandRow* row, std::string_view error) {
  const std::string text = rejection(services_, row, error);
  if (row != nullptr && is_exec(*row)) {
    discard_transaction();
  } else if (client_->in_multi) {
    client_->multi_failed = true;
  }
  contract::EncodedReply reply;
  contract::RespSink(reply, client_->resp).error(text);
  if (!silent()) answer(std::move(reply));
}

Session::Step Session::route(const QueuedCommand& queued) {
  const CommandRow& row = *queued.row;
  if (contract::is_read(row)) return read(queued);
  if (contract::is_session(row)) {
    if (may_subscribe(queued)) return run_session(queued);
    reject(queued.row, contract::kOutOfMemory);
    return Step::kTaken;
  }
  if (is_exec(row)) return exec(queued);
  if (row.name == "watch") {
    if (client_->in_multi) {
      // Redis answers the error and lets the transaction go on.
      answer_at_once(queued, "ERR WATCH inside MULTI is not allowed");
      return Step::kTaken;
    }
    uint64_t bytes = client_->watched_bytes;
    for (const std::string_view key : std::span(queued.command->args).subspan(1)) {
      bytes += contract::watched_bytes(key);
    }
    if (!connection_->may_hold_input(bytes)) {
      client_->unwatched = true;
      reject(queued.row, contract::kOutOfMemory);
      return Step::kTaken;
    }
    watching_ = true;
  } else if (row.name == "unwatch") {
    watching_ = client_->unwatched = false;
  } else if (contract::may_block(row)) {
    return block(queued);
  }
  const bool allows_busy = (row.flags & contract::flag::kAllowBusy) != 0;
  if (allows_busy && services_.scripts.holds_writer() && watch_while_busy(queued)) {
    return Step::kTaken;
  }
  const Step step = queue_write({.row = &row,
                                 .batch = queued.batch,
                                 .command = queued.command,
                                 .db = client_->db,
                                 .resp = client_->resp,
                                 .remembers_reads = contract::remembers_reads(client_->tracking),
                                 .silent = silent(),
                                 .permission = permission_of_script(row)});
  if (row.alone && step == Step::kTaken) exclusive_ = true;
  return step;
}

// WATCH and UNWATCH while a script holds the writer: answered at once, as in Redis. They take
// effect behind it, and before whatever the client sends next: what is not refused waits for them.
bool Session::watch_while_busy(const QueuedCommand& queued) {
  if (!slots_.empty() || assembling_) return false;
  if (queued.row->name == "unwatch") {
    writer_.unwatch(client_->id);
    answer_at_once(queued, {});
    return true;
  }
  if (job_in_flight_) return false;
  answer_at_once(queued, {});
  queue_write({.row = queued.row,
               .batch = queued.batch,
               .command = queued.command,
               .db = client_->db,
               .resp = client_->resp,
               .silent = true,
               .counted = last_place_in_unit(0)});
  assembling_slot_->done = true;
  submit_job();
  return true;
}

// What clients listen to is kept as their input is: all of it together is bounded.
bool Session::may_subscribe(const QueuedCommand& queued) const {
  const std::string_view name = queued.row->name;
  if (!queued.row->pushes || !name.ends_with("subscribe") || name.ends_with("unsubscribe")) {
    return true;
  }
  uint64_t bytes = client_->subscribed_bytes;
  for (const std::string_view channel : std::span(queued.command->args).subspan(1)) {
    bytes += channel.size() + contract::kSubscriptionBytes;
  }
  return connection_->may_hold_input(bytes);
}

// A job of its own: what came before is answered while it waits.
Session::Step Session::block(const QueuedCommand& queued) {
  if (!idle()) return Step::kWait;
  uint64_t bytes = 0;  // that the table of waiting clients may take
  for (const std::string_view arg : queued.command->args) bytes += contract::awaited_bytes(arg);
  if (!connection_->may_hold_input(pending_bytes_ + bytes)) {
    reject(queued.row, contract::kOutOfMemory);
    return Step::kTaken;
  }
  awaited_bytes_ = bytes;
  const bool remembers_reads = contract::remembers_reads(client_->tracking);
  queue_write({.row = queued.row,
               .batch = queued.batch,
               .command = queued.command,
               .db = client_->db,
               .resp = client_->resp,
               .remembers_reads = remembers_reads,
               .silent = silent()});
  blocking_ = true;
  // What it reads must not arrive after the news that it has changed.
  const bool reads = (queued.row->flags & contract::flag::kReadonly) != 0;
  pushes_pass_ = !(remembers_reads && reads);
  // Of one that only stopped sending the command still runs, but does not wait.
  if (!client_->leaving) connection_->set_idle_exempt(true);
  submit_job();
  return Step::kTaken;
}

Session::Step Session::queue_write(Unit unit) {
  if (assembling_ && assembling_->units.size() >= kJobUnitsMax) {
    if (job_in_flight_) return Step::kWait;
    submit_job();
  }
  run_view_.reset();
  if (!assembling_) {
    assembling_ = std::make_unique<WriteJob>();
    assembling_->client = client_;
    assembling_->units.reserve(last_units_);
    assembling_slot_ = open_slot();
  }
  assembling_->units.push_back(std::move(unit));
  return Step::kTaken;
}

Session::Step Session::run_session(const QueuedCommand& queued) {
  const CommandRow& row = *queued.row;
  if (!row.immediate && !idle()) return Step::kWait;
  auto run = [this, queued](contract::EncodedReply* out, types::Notices* notices) {
    contract::RespSink reply(*out, client_->resp);
    Accounting accounting(services_, {.row = *queued.row,
                                      .command = *queued.command,
                                      .client = *client_,
                                      .db = client_->db,
                                      .notices = *notices});
    exec::run_session(services_,
                      {.row = *queued.row,
                       .command = *queued.command,
                       .db = client_->db,
                       .client_id = client_->id},
                      *client_, reply, /*in_exec=*/false);
    accounting.moved(client_->db);
    accounting.kept(reply, nullptr);
  };
  if (row.offload) {
    exclusive_ = true;
    auto task = [self = shared_from_this(), slot = open_slot(), run]() mutable {
      run(&slot->reply, &slot->notices);
      self->thread_.post([self, slot = std::move(slot)] {
        if (self->silent()) slot->reply.clear();
        self->complete(*slot);
        self->after_command(self->was_about_client());
        self->end_exclusive();
      });
    };
    services_.data.readers.submit(std::move(task), data::Work::kLong);
    return Step::kTaken;
  }
  contract::EncodedReply reply;
  bool in_multi = client_->in_multi;
  types::Notices notices;
  run(&reply, &notices);
  tell_connection();
  if (in_multi && !client_->in_multi) watching_ = false;  // DISCARD and RESET forget the keys
  if (!silent() || row.pushes) answer(std::move(reply));
  tell(std::move(notices));
  if (client_->close_after_reply) closing_ = true;
  return Step::kTaken;
}

void Session::prefetch_behind_write(const QueuedCommand& queued) {
  if (prefetched_ != 0 || queued.row->scans) return;
  prefetched_ = 1;
  std::vector<std::string> cold;
  auto keyspace = (*databases_.map)[static_cast<size_t>(client_->db.load())];
  bool first = true;
  for (const Incoming& incoming : inbox_) {
    for (size_t i = first ? incoming.next : 0; i < incoming.batch->commands.size(); ++i) {
      const net::Command& command = incoming.batch->commands[i];
      std::string error;
      contract::Resolved resolved = services_.table.resolve(command.args, &error);
      if (!error.empty() || !contract::is_read(*resolved.row) || resolved.row->scans) {
        return prefetch(services_, std::move(cold), [] {});
      }
      add_cold_keys(services_, *resolved.row, command.args, keyspace, &cold);
    }
    first = false;
  }
  prefetch(services_, std::move(cold), [] {});
}

}  // namespace ingot::exec

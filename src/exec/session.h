// Keeps one connection's commands and replies in order (P1) and sends each command where it runs:
// at once, to the reader pool, or to the writer.
//
// Reads that stand next to each other form a run: they are tried in memory, and from the first
// miss on share one view, so that the writes behind them need not wait. Consecutive writes form a
// job; reads behind an unfinished job wait for it. At most one job of a connection is in flight.
//
// Threads: the connection's I/O thread, for everything. Pool and writer post back to it.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/connection.h"
#include "src/access/users.h"
#include "src/contract/client.h"
#include "src/contract/context.h"
#include "src/contract/reply.h"
#include "src/contract/row.h"
#include "src/contract/table.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/exec/permission.h"
#include "src/exec/services.h"
#include "src/exec/writer.h"
#include "src/types/notices.h"

namespace ingot::exec {

class Session : public net::Handler,
                public contract::PushTarget,
                public std::enable_shared_from_this<Session> {
 public:
  Session(Services& services, Writer& writer, net::Connection& connection,
          std::shared_ptr<contract::Client> client);

  void on_commands(net::BatchPtr batch) override;
  std::shared_ptr<net::ArgumentSink> argument_sink(std::span<const std::string_view> args,
                                                   uint64_t bytes) override;
  void on_output_drained() override;
  void on_input_end() override;
  void on_lost() override;
  void on_protocol_error(std::string_view error) override;
  void on_close(std::string_view reason) override;

  void push(const contract::Push& push) override;
  void flush_pushes() override;

  // CLIENT KILL, posted to this thread by whoever runs it.
  void kill();

 private:
  // A place in the order of replies.
  struct Slot {
    bool done = false;
    contract::EncodedReply reply;
    size_t pushed_bytes = 0;                         // of it
    size_t reads = 0;                                // commands that the pool reads for it
    types::Notices notices;                          // what others are told when it is delivered
    std::vector<types::KeyReader::KeyName> expired;  // of the reads behind it
  };
  using SlotPtr = std::shared_ptr<Slot>;

  enum class Step : uint8_t {
    kTaken,  // the command was answered or is on its way
    kWait,   // it must wait for what is in flight
  };

  void advance();
  // --- session.cc: order
  SlotPtr open_slot();
  void answer(contract::EncodedReply reply);  // a reply that is complete now, in its place
  void tell(types::Notices notices);          // in the same place
  void deliver(contract::EncodedReply& reply);
  void deliver_done();
  void settle();  // delivers what is complete, pauses and resumes reading, closes
  bool idle() const;
  uint64_t output_bytes() const;  // that are ready and not sent
  bool output_full() const;
  void submit_job();
  void on_job_done(const SlotPtr& slot, contract::EncodedReply reply, bool given_up);
  void on_read_done(const SlotPtr& slot);
  void on_reads_done(std::span<const SlotPtr> slots);
  void complete(Slot& slot);
  void end_exclusive();
  bool is_held_back(const contract::QueuedCommand& queued);
  void end_pause();

  // --- session_dispatch.cc: routing
  Step dispatch(const net::BatchPtr& batch, const net::Command& command);
  void note_command(const contract::Resolved& resolved);
  void answer_at_once(const contract::QueuedCommand& queued, std::string_view error);
  std::string guard_error(contract::Guard guard) const;
  void tell_connection();
  std::string refusal(const contract::Resolved& resolved, const std::string& resolve_error);
  std::string subscriber_refusal(const contract::Resolved& resolved) const;
  std::string replica_refusal(const contract::CommandRow& row) const;
  // --- session_permission.cc: what a client of a restricted user may do
  const access::User& user();
  Step check_permission(const contract::QueuedCommand& command, std::string* error);
  bool is_long_check(const contract::QueuedCommand& command);
  void check_in_pool(const contract::QueuedCommand& command);
  std::string permission_error(const contract::QueuedCommand& command);
  std::string unreadable_error(const contract::QueuedCommand& command);
  TransactionPermission transaction_permission();
  TransactionPermission permission_of_script(const contract::CommandRow& row) const;

  void reject(const contract::CommandRow* row, std::string_view error);
  Step route(const contract::QueuedCommand& queued);
  void enqueue_in_multi(contract::QueuedCommand queued);
  Step exec(const contract::QueuedCommand& queued);
  Step run_session(const contract::QueuedCommand& queued);
  bool watch_while_busy(const contract::QueuedCommand& queued);
  bool may_subscribe(const contract::QueuedCommand& queued) const;
  Step block(const contract::QueuedCommand& queued);
  Step queue_write(Unit unit);
  void prefetch_behind_write(const contract::QueuedCommand& queued);
  void close_transaction();
  void discard_transaction();
  bool silent() const;
  bool was_about_client() const;
  void after_command(bool is_about_client = false);

  // --- session_reads.cc
  Step read(const contract::QueuedCommand& queued);
  void remember_reads(const contract::QueuedCommand& queued);
  bool probe(const contract::QueuedCommand& queued);
  // `probe` is `data`, or null when that reads a view.
  bool try_read(const contract::QueuedCommand& queued, storage::Reader& data,
                const types::DatabaseMap& databases, std::shared_ptr<const data::View> view,
                storage::KeyProbe* probe);
  void remove_expired(std::vector<types::KeyReader::KeyName> names);
  void read_in_pool(const contract::QueuedCommand& queued);
  void read_transaction(std::vector<contract::QueuedCommand> transaction,
                        TransactionPermission permission, const contract::QueuedCommand& exec);
  struct PoolRead;
  static storage::ReadRing::Work look_up(PoolRead read);
  static void run_in_pool(PoolRead read);
  static void run_long(PoolRead read);
  static void finish(PoolRead read);
  // Scripts that came together run one after another on one thread, as long as they are short: to
  // hand each of them over costs more than most take.
  void gather_script(PoolRead read);
  SlotPtr open_read(size_t commands);
  // Whether so many commands more may be read: what they will answer waits in memory, and a client
  // that takes it at once must not be taken for one that does not.
  bool may_read(size_t commands) const;
  void note_read(const Slot& slot);
  void submit_scripts();
  static void give_up(PoolRead read);
  static void run_scripts(std::vector<PoolRead>& reads);

  static constexpr size_t kPendingBytesMax = 4 << 20;  // unanswered input; then reading pauses
  // Enough to keep a disk busy; bounded, because their replies wait in memory.
  static constexpr size_t kReadsInFlightMax = 128;
  // Of a command of which nothing is known: so a few begin at once.
  static constexpr size_t kReplyBytesFirst = 64 << 10;
  static constexpr size_t kJobUnitsMax = 4096;
  static constexpr size_t kScriptsAtOnce = 16;
  static constexpr std::chrono::milliseconds kScriptsTurn{1};

  Services& services_;
  Writer& writer_;
  net::Connection* connection_;  // null once closed
  net::IoThread& thread_;
  const std::shared_ptr<contract::Client> client_;
  std::shared_ptr<const access::User> user_;  // as the client's account was at
  uint64_t user_version_ = 0;                 // this version; only asked for when it is restricted
  // What the pool found about the command that is next.
  struct Checked {
    std::string error;  // empty: it may run
    TransactionPermission transaction;
  };
  std::optional<Checked> checked_;

  struct Incoming {
    net::BatchPtr batch;
    size_t next = 0;
  };
  std::deque<Incoming> inbox_;
  std::deque<SlotPtr> slots_;   // replies not yet delivered, oldest first
  size_t held_bytes_ = 0;       // of the replies that are ready in slots_
  size_t held_push_bytes_ = 0;  // of these, the pushes among them
  std::string protocol_error_;

  std::unique_ptr<WriteJob> assembling_;
  SlotPtr assembling_slot_;
  size_t last_units_ = 1;  // of the job before: the next one will be like it
  bool job_in_flight_ = false;
  bool blocking_ = false;                           // the job in flight is a blocking command
  bool pushes_pass_ = false;                        // pushes need not wait for that
  size_t reads_in_flight_ = 0;                      // and so many commands:
  size_t commands_in_flight_ = 0;                   // more than one for an EXEC
  size_t reply_bytes_expected_ = kReplyBytesFirst;  // of each: about the most of the last few
  bool exclusive_ = false;  // an EXEC or a long command has the client: nothing else runs
  bool watching_ = false;   // WATCH was sent and not yet undone
  bool closing_ = false;    // no more commands are taken
  bool paused_ = false;
  bool tracks_ = false;        // it did when the session last looked
  uint64_t pause_ticket_ = 0;  // its next command waits for the end of a CLIENT PAUSE; 0: no
  size_t pending_bytes_ = 0;
  uint64_t awaited_bytes_ = 0;  // of the keys that its blocking command waits for
  size_t queued_bytes_ = 0;     // of an open MULTI's commands
  size_t prefetched_ = 0;       // commands behind the running job whose blocks were asked for

  std::shared_ptr<const data::View> run_view_;
  data::Store::Databases databases_;
  int64_t now_ms_ = 0;
  std::vector<data::ReaderPool::Lookup> lookups_;   // submitted together
  std::shared_ptr<std::vector<PoolRead>> scripts_;  // submitted together; null: none
  storage::NoWaitReads probed_;                     // of the last probe
  contract::EncodedReply scratch_;
};

}  // namespace ingot::exec

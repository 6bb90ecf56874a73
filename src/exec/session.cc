// The slots of replies in order, and what happens as batches, jobs and reads come and go.
#include "src/exec/session.h"

#include "src/contract/client_registry.h"
#include "src/contract/replicas.h"
#include "src/exec/client_pause.h"
#include "src/exec/large_argument.h"
#include "src/metrics/log.h"

namespace ingot::exec {

namespace {

// In portions: it may have subscribed to millions.
void leave_channels(contract::Channels& channels, net::IoThread& thread,
                    std::shared_ptr<contract::Client> client) {
  constexpr size_t kPortion = 1024;
  if (channels.close(*client, kPortion)) return;
  thread.post([&channels, &thread, client = std::move(client)]() mutable {
    leave_channels(channels, thread, std::move(client));
  });
}

}  // namespace

Session::Session(Services& services, Writer& writer, net::Connection& connection,
                 std::shared_ptr<contract::Client> client)
    : services_(services),
      writer_(writer),
      connection_(&connection),
      thread_(connection.thread()),
      client_(std::move(client)) {
  client_->thread_index = thread_.index();
  client_->pushes = this;
}

void Session::on_commands(net::BatchPtr batch) {
  if (closing_ || batch->commands.empty()) return;
  pending_bytes_ += batch->bytes();
  client_->pending_bytes.store(pending_bytes_, std::memory_order_relaxed);
  inbox_.push_back({.batch = std::move(batch)});
  advance();
}

std::shared_ptr<net::ArgumentSink> Session::argument_sink(std::span<const std::string_view> args,
                                                          uint64_t bytes) {
  auto argument = take_large_argument(services_, thread_, args, bytes);
  if (argument == nullptr || closing_) return nullptr;
  // What will be refused is not written. An EXEC may have the client, so it is asked with a lock.
  const access::AccountPtr account = client_->account();
  if (!account->is_unrestricted()) {
    std::vector<std::string_view> with_value(args.begin(), args.end());
    with_value.emplace_back();
    const access::CommandIds& ids = services_.users.ids();
    const contract::CommandRow& row = *services_.table.find(args[0]);
    if (!access::check(*account->user(), ids, row, with_value).is_allowed()) return nullptr;
  }
  return argument;
}

void Session::on_input_end() {
  client_->leaving = true;
  // Its connection is about to be closed: who asks right behind that finds it gone.
  if (idle() && inbox_.empty()) leave_channels(services_.channels, thread_, client_);
}

void Session::on_lost() {
  client_->leaving = client_->gone = true;
  if (connection_ != nullptr) advance();
}

void Session::on_protocol_error(std::string_view error) {
  metrics::log::verbose("{}: id={} addr={}", error, client_->id, client_->address);
  protocol_error_ = error;
  advance();
}

void Session::on_close(std::string_view reason) {
  // What the server itself decided, an operator wants to know.
  if (reason.starts_with("Closing client") || reason.starts_with("Closed for")) {
    metrics::log::warning("{}: id={} addr={}", reason, client_->id, client_->address);
  } else {
    metrics::log::verbose("{}: id={} addr={}", reason, client_->id, client_->address);
  }
  client_->leaving = client_->gone = client_->closed = true;
  if (watching_) writer_.unwatch(client_->id);
  if (blocking_) writer_.unblock(client_->id);
  if (pause_ticket_ != 0) services_.pause.forget(pause_ticket_);
  client_->pushes = nullptr;
  services_.couriers.of(thread_).forget(*client_);
  leave_channels(services_.channels, thread_, client_);
  services_.tracking.close(*client_);
  if (client_->follows) services_.replicas.remove(*client_);
  if (tracks_) services_.couriers.forget_if_nobody_tracks();
  services_.clients.remove(client_->id);
  connection_ = nullptr;
  closing_ = true;
  inbox_.clear();
  assembling_.reset();
  run_view_.reset();
}

void Session::kill() {
  if (connection_ != nullptr) connection_->close();
}

void Session::advance() {
  deliver_done();
  run_view_.reset();
  databases_ = services_.data.store.databases();
  now_ms_ = services_.data.store.now_ms();
  client_->last_command_ms.store(now_ms_, std::memory_order_relaxed);
  while (!inbox_.empty() && !exclusive_ && !closing_ && !output_full()) {
    Incoming& incoming = inbox_.front();
    if (dispatch(incoming.batch, incoming.batch->commands[incoming.next]) == Step::kWait) break;
    checked_.reset();
    if (++incoming.next == incoming.batch->commands.size()) inbox_.pop_front();
  }
  if (inbox_.empty() && !exclusive_ && !closing_ && !protocol_error_.empty()) {
    reject(nullptr, protocol_error_);
    closing_ = true;
  }
  if (!job_in_flight_) submit_job();
  if (!lookups_.empty()) services_.data.readers.look_up(std::exchange(lookups_, {}));
  submit_scripts();
  run_view_.reset();
  bool stopped = output_full();
  settle();
  // The socket took it all at once: nobody will tell that it drained.
  if (stopped && connection_ != nullptr && !output_full()) {
    thread_.post([self = shared_from_this()] { self->on_output_drained(); });
  }
}

uint64_t Session::output_bytes() const {
  return connection_->output_bytes.load(std::memory_order_relaxed) + connection_->out().size() +
         held_bytes_;
}

bool Session::output_full() const {
  return output_bytes() > net::kOutputPauseBytes;
}

void Session::on_output_drained() {
  if (connection_ != nullptr) advance();
}

Session::SlotPtr Session::open_slot() {
  return slots_.emplace_back(std::make_shared<Slot>());
}

void Session::answer(contract::EncodedReply reply) {
  if (assembling_) {
    // Keeps its place among the writes around it.
    assembling_->units.push_back({.canned = std::move(reply.bytes)});
    return;
  }
  if (slots_.empty()) return deliver(reply);
  held_bytes_ += reply.bytes.size();
  if (!slots_.back()->done || !reply.bodies.empty()) {
    open_slot()->done = true;
    slots_.back()->reply = std::move(reply);
    return;
  }
  slots_.back()->reply.bytes.append(reply.bytes);
}

void Session::tell(types::Notices notices) {
  if (notices.empty()) return;
  if (slots_.empty()) return services_.couriers.release(std::move(notices));
  if (!slots_.back()->done) open_slot()->done = true;
  slots_.back()->notices.append(std::move(notices));
}

void Session::deliver(contract::EncodedReply& reply) {
  if (connection_ == nullptr) return;
  size_t sent = 0;
  for (auto& body : reply.bodies) {
    connection_->out().append(reply.bytes, sent, body.offset - sent);
    connection_->send_body(std::move(body.source));
    sent = body.offset;
  }
  if (sent == 0 && connection_->out().empty()) {
    connection_->out().swap(reply.bytes);
  } else {
    connection_->out().append(reply.bytes, sent, std::string::npos);
  }
}

// A command that waits to be fed stands alone, and what comes meanwhile comes before its reply.
void Session::push(const contract::Push& push) {
  if (connection_ == nullptr || closing_) return;
  const char mark = push.mark != '\0' ? push.mark : client_->resp == 3 ? '>' : '*';
  if (slots_.empty() || (blocking_ && pushes_pass_)) {
    connection_->out().push_back(mark);
    for (const net::SharedBytes& part : {push.head, push.body}) {
      if (part->size() > net::kSharedBytesMin) {
        connection_->send_shared(part);
      } else {
        connection_->out().append(*part);
      }
    }
    return;
  }
  if (slots_.back()->pushed_bytes == 0) open_slot()->done = true;
  Slot& slot = *slots_.back();
  const size_t bytes = 1 + push.head->size() + push.body->size();
  slot.reply.bytes.append(1, mark).append(*push.head).append(*push.body);
  slot.pushed_bytes += bytes;
  held_bytes_ += bytes;
  held_push_bytes_ += bytes;
  connection_->hold_output(held_push_bytes_);
}

void Session::flush_pushes() {
  if (connection_ != nullptr) connection_->flush();
}

bool Session::idle() const {
  return slots_.empty() && !assembling_ && !job_in_flight_ && !exclusive_;
}

void Session::deliver_done() {
  while (!slots_.empty() && slots_.front()->done) {
    held_bytes_ -= slots_.front()->reply.bytes.size();
    held_push_bytes_ -= slots_.front()->pushed_bytes;
    deliver(slots_.front()->reply);
    types::Notices& notices = slots_.front()->notices;
    if (!notices.empty()) services_.couriers.release(std::move(notices));
    slots_.pop_front();
  }
}

void Session::settle() {
  if (connection_ == nullptr) return;
  deliver_done();
  bool finished = idle() && (inbox_.empty() || closing_);
  if (finished) pending_bytes_ = awaited_bytes_ = 0;
  client_->pending_bytes.store(pending_bytes_, std::memory_order_relaxed);
  bool pause = pending_bytes_ > kPendingBytesMax || !connection_->may_hold_input(pending_bytes_);
  if (pause != paused_) {
    paused_ = pause;
    pause ? connection_->pause_reading() : connection_->resume_reading();
  }
  if (!client_->in_multi) queued_bytes_ = 0;
  client_->queued_bytes.store(queued_bytes_, std::memory_order_relaxed);
  connection_->hold_input(pending_bytes_ + queued_bytes_ + awaited_bytes_ + client_->watched_bytes +
                          client_->subscribed_bytes);
  connection_->hold_output(held_push_bytes_);
  using Listens = net::Connection::Listens;
  connection_->set_listens(client_->is_subscriber() ? Listens::kAsSubscriber
                           : client_->is_monitor()  ? Listens::kAsMonitor
                                                    : Listens::kNo);
  const bool tracks = client_->tracking != 0;
  if (std::exchange(tracks_, tracks) && !tracks) services_.couriers.forget_if_nobody_tracks();
  connection_->flush();
  if (connection_ == nullptr) return;
  connection_->set_busy(!finished);
  if (client_->follows) connection_->set_idle_exempt(true);
  // Of one that leaves now nothing more is run, as in Redis.
  if (pause_ticket_ != 0 && idle()) connection_->set_idle_exempt(true);
  if (finished && closing_) connection_->close_after_flush();
}

void Session::submit_job() {
  if (!assembling_) return;
  job_in_flight_ = true;
  prefetched_ = 0;
  last_units_ = std::min<size_t>(assembling_->units.size(), 64);
  assembling_->thread = &thread_;
  assembling_->done = [self = shared_from_this(), slot = std::move(assembling_slot_)](
                          contract::EncodedReply reply, bool given_up) mutable {
    self->on_job_done(std::move(slot), std::move(reply), given_up);
  };
  writer_.submit(std::move(assembling_));
}

void Session::on_job_done(const SlotPtr& slot, contract::EncodedReply reply, bool given_up) {
  slot->reply = std::move(reply);
  complete(*slot);
  job_in_flight_ = false;
  if (given_up && connection_ != nullptr) return connection_->close();
  if (std::exchange(blocking_, false) && connection_ != nullptr) {
    connection_->set_idle_exempt(false);
  }
  if (assembling_) {
    submit_job();
  } else if (exclusive_) {
    close_transaction();
    after_command(was_about_client());
    return end_exclusive();
  }
  if (connection_ != nullptr) advance();
}

void Session::complete(Slot& slot) {
  slot.done = true;
  held_bytes_ += slot.reply.bytes.size();
  if (connection_ == nullptr) deliver_done();  // for its notices
}

void Session::on_read_done(const SlotPtr& slot) {
  on_reads_done({&slot, 1});
}

void Session::on_reads_done(std::span<const SlotPtr> slots) {
  for (const SlotPtr& slot : slots) {
    note_read(*slot);
    complete(*slot);
  }
  if (connection_ == nullptr) return;
  for (const SlotPtr& slot : slots) remove_expired(std::move(slot->expired));
  // Others may stand before it; then there is nothing to send yet.
  bool more = !inbox_.empty() || !protocol_error_.empty() || assembling_;
  more ? advance() : settle();
}

bool Session::is_held_back(const contract::QueuedCommand& queued) {
  const ClientPause::Mode mode = services_.pause.mode(now_ms_);
  const bool is_meant = mode == ClientPause::Mode::kAll || (mode == ClientPause::Mode::kChanges &&
                                                            is_change(*queued.row, client_->queue));
  if (!is_meant || pause_ticket_ != 0) return is_meant;
  pause_ticket_ = services_.pause.wait([weak = weak_from_this(), &thread = thread_] {
    thread.post([weak] {
      if (const auto self = weak.lock()) self->end_pause();
    });
  });
  client_->paused = pause_ticket_ != 0;
  return client_->paused;
}

void Session::end_pause() {
  pause_ticket_ = 0;
  client_->paused = false;
  if (connection_ == nullptr) return;
  connection_->set_idle_exempt(false);
  advance();
}

void Session::end_exclusive() {
  exclusive_ = false;
  tell_connection();
  if (client_->close_after_reply) closing_ = true;
  if (connection_ != nullptr) advance();
}

}  // namespace ingot::exec

// The course of one attempt.
#include "src/replication/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include "net/resp_parser.h"
#include "src/access/users.h"
#include "src/contract/args.h"
#include "src/contract/client_registry.h"
#include "src/contract/replicas.h"
#include "src/contract/running_server.h"
#include "src/data/rdb_loader.h"
#include "src/data/store.h"
#include "src/exec/at_once.h"
#include "src/exec/following.h"
#include "src/exec/large_argument.h"
#include "src/exec/publish.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"

namespace ingot::replication {

using contract::MasterLink;
using net::LinkSocket;

namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kValuePieceBytes = 512 << 10;  // of a large value
constexpr int64_t kAckMs = 1000;                // between two acknowledgements
constexpr int64_t kRoomMs = 100;                // how long the stream is left unread at a time
constexpr std::chrono::milliseconds kWriterTick{50};
constexpr size_t kEndMarkBytes = 40;
constexpr int64_t kSteadyMs = 1000;  // a link that lasts so long is no failing attempt

// Who may do everything, and is none of the users.
access::AccountPtr master_account() {
  access::User user;
  user.enabled = user.nopass = true;
  user.root.all_keys = user.root.all_channels = true;
  user.root.all_commands = user.root.future_commands = true;
  user.root.commands.set();
  return std::make_shared<access::Account>("(superuser)", std::move(user));
}

}  // namespace

void disconnect_followers(exec::Services& services) {
  for (const auto& client : services.replicas.all()) {
    if (client->replica->state != contract::Replica::State::kWaits) client->kill();
  }
}

Link::Link(exec::Services& services, exec::Writer& writer, const settings::Settings& settings,
           std::function<std::optional<uint64_t>()> begin,
           std::function<void(bool accepted)> on_taken_over)
    : services_(services),
      writer_(writer),
      begin_(std::move(begin)),
      on_taken_over_(std::move(on_taken_over)),
      bulk_bytes_max_(static_cast<uint64_t>(settings.proto_max_bulk_len)),
      connection_(settings) {
  figures_.host = settings.master.host;
  figures_.port = settings.master.port;
}

bool Link::fail(std::string_view why) const {
  if (interrupted_) return false;
  metrics::log::warning("Following {}:{}: {}", figures_.host, figures_.port, why);
  return false;
}

void Link::interrupt() {
  interrupted_ = true;
  connection_.interrupt();
}

void Link::enter(MasterLink::State state) {
  std::lock_guard lock(mutex_);
  figures_.state = state;
  last_io_ms_ = steady_ms();
}

MasterLink Link::figures() const {
  std::lock_guard lock(mutex_);
  MasterLink figures = figures_;
  const int64_t idle_s = (steady_ms() - last_io_ms_) / 1000;
  figures.transfer_idle_s = idle_s;
  if (applier_) {
    figures.last_io_s = idle_s;
    figures.read_offset = applier_->taken_offset();
    figures.applied_offset = applier_->applied_offset();
  }
  return figures;
}

bool Link::run() {
  enter(MasterLink::State::kConnecting);
  metrics::log::notice("Connecting to MASTER {}:{}", figures_.host, figures_.port);
  if (std::string why = connection_.connect(); !why.empty()) return fail(why);
  enter(MasterLink::State::kHandshake);
  if (std::string why = connection_.shake_hands(); !why.empty()) return fail(why);
  const auto here = place_to_go_on();
  if (!here) return false;
  const auto answer =
      connection_.ask_from({.id = here->id, .offset = here->offset}, on_taken_over_ != nullptr);
  if (on_taken_over_) on_taken_over_(answer.error.empty());
  if (!answer.error.empty()) return fail(answer.error);
  const std::optional<uint64_t> number = begin_();
  if (!number) return false;
  number_ = *number;
  if (answer.goes_on) {
    if (!go_on_as(answer.id.empty() ? here->id : answer.id)) return false;
  } else if (!take_all(answer.full)) {
    return false;
  }
  return follow_stream();
}

// What clients had sent when this server was told to follow the writer may still be about to run,
// and to tell. So this is where the data stand when it has done all that; nothing if the link ends
// meanwhile.
std::optional<data::ChangeStream::Place> Link::place_to_go_on() {
  data::ChangeStream& changes = services_.data.changes;
  std::promise<data::ChangeStream::Place> found;
  auto place = found.get_future();
  writer_.between_groups(
      [&changes, found = std::move(found)]() mutable { found.set_value(changes.place()); });
  while (place.wait_for(kWriterTick) == std::future_status::timeout) {
    if (interrupted_) return std::nullopt;
  }
  try {
    return place.get();
  } catch (const std::future_error&) {
    return std::nullopt;  // the writer has stopped
  }
}

bool Link::go_on_as(const std::string& id) {
  metrics::log::notice("MASTER <-> REPLICA sync: Master accepted a Partial Resynchronization.");
  if (id == services_.data.changes.place().id) return true;
  std::promise<storage::Status> renamed;
  auto outcome = renamed.get_future();
  writer_.between_groups([this, id, renamed = std::move(renamed)]() mutable {
    const bool is_ours = services_.following.link == number_;
    renamed.set_value(is_ours ? services_.data.changes.rename(id) : storage::Status());
    if (is_ours) disconnect_followers(services_);
  });
  try {
    const storage::Status status = outcome.get();
    return status.ok() || fail("the master's id cannot be kept: " + status.message());
  } catch (const std::future_error&) {
    return false;  // the writer has stopped
  }
}

bool Link::take_all(const Position& place) {
  metrics::log::notice("MASTER <-> REPLICA sync: Full resync from master: {}:{}", place.id,
                       place.offset);
  enter(MasterLink::State::kTransfer);
  const auto transfer = connection_.begin_transfer();
  if (!transfer.error.empty()) return fail(transfer.error);
  const auto databases = static_cast<int>(services_.data.store.databases().map->size());
  const auto loader = std::make_shared<data::RdbLoader>(
      services_.data, databases, data::RdbLoadOptions{.keep_expired = true, .keep_packing = true});
  {
    std::lock_guard lock(mutex_);
    figures_.transfer_bytes = transfer.bytes;
  }
  if (!receive(transfer, *loader)) return false;
  metrics::log::notice("MASTER <-> REPLICA sync: {} keys have come, taking their place",
                       loader->keys_loaded());
  return publish(loader, place);
}

// Meanwhile a byte a second tells the master that somebody is there.
bool Link::receive(const MasterConnection::Transfer& transfer, data::RdbLoader& loader) {
  const bool by_length = transfer.end_mark.empty();
  uint64_t left = transfer.bytes;
  std::string behind;  // the end mark, and what came with it
  std::vector<char> buffer(kReadBytes);
  const auto is_complete = [&] { return by_length ? left == 0 : behind.size() >= kEndMarkBytes; };
  while (!is_complete()) {
    if (const int64_t now_ms = steady_ms(); now_ms - last_sent_ms_ >= kAckMs) {
      if (!connection_.send("\n")) return fail("I/O error writing to MASTER");
      last_sent_ms_ = now_ms;
    }
    std::span<char> room(buffer);
    if (by_length) room = room.first(std::min<uint64_t>(room.size(), left));
    size_t bytes = 0;
    const auto got = connection_.socket().read_some(room, &bytes, kAckMs);
    if (got == LinkSocket::Got::kEnd) return fail("the connection ended while data were coming");
    if (got == LinkSocket::Got::kNothing) {
      if (steady_ms() - last_io_ms_ > connection_.timeout_ms()) {
        return fail(
            "Timeout receiving bulk data from MASTER... If the problem persists try to set "
            "the 'repl-timeout' parameter in redis.conf to a larger value.");
      }
      continue;
    }
    last_io_ms_ = steady_ms();
    const std::string_view piece(buffer.data(), bytes);
    size_t taken = 0;
    if (!loader.finished()) {
      if (!loader.feed(piece)) return fail("the data cannot be taken: " + loader.error());
      taken = loader.taken();
    }
    left -= by_length ? bytes : 0;
    behind += piece.substr(taken);
    if (by_length && !behind.empty()) break;
    std::lock_guard lock(mutex_);
    figures_.transferred_bytes += bytes;
  }
  if (!loader.finished() || (by_length && !behind.empty()) ||
      !behind.starts_with(transfer.end_mark)) {
    return fail("the data do not end where they should");
  }
  early_ = behind.substr(transfer.end_mark.size());
  return true;
}

bool Link::publish(std::shared_ptr<const data::RdbLoader> loader, const Position& place) {
  const auto& aux = loader->aux();
  const auto selected = aux.find("repl-stream-db");
  const auto db = selected == aux.end() ? 0 : contract::parse_integer(selected->second).value_or(0);
  const auto databases = static_cast<int64_t>(services_.data.store.databases().map->size());
  if (db < 0 || db >= databases) {
    return fail(fmt::format("the master uses database {}, and there are {} here ('databases')", db,
                            databases));
  }
  std::promise<storage::Status> done;
  auto outcome = done.get_future();
  const std::string why = exec::publish(
      services_, writer_,
      {.loader = std::move(loader),
       .also =
           [this, place, db](types::KeyWriter& keys) {
             if (services_.following.link != number_) {
               keys.data().latch_error({storage::Status::Code::kBusy, "the master is another one"});
               return;
             }
             writer_.adopt({.id = place.id, .offset = place.offset, .db = static_cast<int>(db)});
           },
       .done = [&done](const storage::Status& status) { done.set_value(status); }});
  if (!why.empty()) return fail(why);
  const storage::Status status = outcome.get();
  return status.ok() || fail("the data cannot be kept: " + status.message());
}

std::shared_ptr<contract::Client> Link::make_client() {
  auto client = std::make_shared<contract::Client>(
      services_.clients.next_id(), connection_.socket().peer_address(),
      connection_.socket().local_address(), connection_.socket().fd(), /*unix=*/false,
      services_.server.now_ms(), master_account());
  client->authenticated = client->is_master = true;
  client->reply_mode = contract::ReplyMode::kOff;
  client->kill = [link = weak_from_this()] {
    if (const auto alive = link.lock()) alive->interrupt();
  };
  services_.clients.add(client);
  return client;
}

bool Link::follow_stream() {
  const auto client = make_client();
  const data::ChangeStream::Place here = services_.data.changes.place();
  const auto applier = std::make_shared<StreamApplier>(
      services_, writer_, client,
      StreamApplier::Begin{.link = number_, .offset = here.offset, .db = std::max(here.db, 0)},
      [link = weak_from_this()] {
        if (const auto alive = link.lock()) alive->connection_.nudge();
      });
  {
    std::lock_guard lock(mutex_);
    applier_ = applier;
  }
  enter(MasterLink::State::kConnected);
  services_.following.in_step = services_.following.link == number_;
  const int64_t begun_ms = steady_ms();
  metrics::log::notice("MASTER <-> REPLICA sync: in the stream, from {}", here.offset);
  is_heard_ = send_ack(*applier);
  (void)read_stream(*applier);
  services_.following.in_step = false;
  applier->end();
  services_.clients.remove(client->id);
  return !applier->has_failed() && steady_ms() - begun_ms >= kSteadyMs;
}

bool Link::send_ack(const StreamApplier& applier) {
  last_sent_ms_ = steady_ms();
  const std::string applied = std::to_string(applier.applied_offset());
  const uint64_t synced_offset = applier.synced_offset();
  const std::string synced = std::to_string(synced_offset);
  std::vector<std::string_view> words = {"REPLCONF", "ACK", applied};
  if (synced_offset != 0) words.insert(words.end(), {"FACK", synced});
  return connection_.send_command(words);
}

// A master that has ended hears nothing; what it has sent before is taken to its end.
void Link::send_ack_if_due(StreamApplier& applier) {
  const bool is_wanted = applier.take_ack_wish();
  const bool is_due = steady_ms() - last_sent_ms_ >= kAckMs;
  if (is_heard_ && (is_wanted || is_due)) is_heard_ = send_ack(applier);
}

struct Link::Incoming {
  net::RespParser parser;
  uint64_t offset;  // of the stream, behind all that has come
};

bool Link::read_stream(StreamApplier& applier) {
  Incoming stream{.parser = {}, .offset = applier.taken_offset()};
  while (read_more(applier, stream) && take_commands(applier, stream)) {
  }
  return false;
}

// Meanwhile the master hears how far all is applied.
bool Link::read_more(StreamApplier& applier, Incoming& stream) {
  size_t bytes = 0;
  if (!early_.empty()) {
    const auto room = stream.parser.prepare(kReadBytes);
    bytes = early_.copy(room.data(), room.size());
    early_.erase(0, bytes);
  }
  while (bytes == 0) {
    if (applier.has_failed()) return fail("what it tells cannot be kept now");
    send_ack_if_due(applier);
    if (!applier.wait_for_room(kRoomMs)) continue;
    const int64_t wait_ms = std::max<int64_t>(1, kAckMs - (steady_ms() - last_sent_ms_));
    switch (connection_.socket().read_some(stream.parser.prepare(kReadBytes), &bytes, wait_ms)) {
      case LinkSocket::Got::kEnd:
        return fail("Connection with master lost.");
      case LinkSocket::Got::kNothing:
        if (!is_heard_) return fail("I/O error writing to MASTER");
        if (steady_ms() - last_io_ms_ > connection_.timeout_ms()) {
          return fail("MASTER timeout: no data nor PING received...");
        }
        break;
      case LinkSocket::Got::kBytes:
        last_io_ms_ = steady_ms();
        break;
    }
  }
  stream.parser.commit(bytes);
  stream.offset += bytes;
  return true;
}

bool Link::take_commands(StreamApplier& applier, Incoming& stream) {
  const net::ParseLimits limits{.bulk_bytes_max = bulk_bytes_max_};
  net::RespParser& parser = stream.parser;
  while (true) {
    const auto status = parser.parse(limits);
    if (parser.has_commands()) {
      const net::BatchPtr batch = parser.take_batch();
      if (!applier.take(batch, stream.offset - parser.incomplete_bytes())) {
        return fail("the stream is not as a master sends it");
      }
      if (status != net::RespParser::Status::kNeedMore) continue;
    }
    if (status == net::RespParser::Status::kError) return fail(parser.error());
    if (status == net::RespParser::Status::kNeedMore) return true;
    auto sink = exec::take_large_argument(services_, exec::at_once(), parser.arguments_so_far(),
                                          parser.large_argument_bytes());
    if (sink == nullptr) {
      parser.gather();
    } else if (!take_large_value(applier, stream, std::move(sink))) {
      return false;
    }
  }
}

// It goes into the engine as it comes, as that of a client does.
bool Link::take_large_value(StreamApplier& applier, Incoming& stream,
                            std::shared_ptr<net::ArgumentSink> sink) {
  uint64_t missing = stream.parser.large_argument_bytes();
  stream.parser.divert(sink);
  while (missing > 0) {
    std::string piece;
    while (true) {
      missing -= stream.parser.take_raw(
          std::min<uint64_t>(kValuePieceBytes - piece.size(), missing), piece);
      if (missing == 0 || piece.size() == kValuePieceBytes) break;
      if (!read_more(applier, stream)) return false;
    }
    const auto done = std::make_shared<std::promise<bool>>();
    auto is_kept = done->get_future();
    sink->write(std::move(piece), [done](bool ok) { done->set_value(ok); });
    while (is_kept.wait_for(std::chrono::milliseconds(kRoomMs)) != std::future_status::ready) {
      if (interrupted_) return false;
      send_ack_if_due(applier);
    }
    if (!is_kept.get()) return fail("a large value that it tells cannot be kept now");
  }
  return true;
}

}  // namespace ingot::replication

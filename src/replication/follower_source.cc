// The phases of what a follower is sent. One step is under way at a time, so what it works on needs
// no lock.
#include "src/replication/follower_source.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <utility>

#include "src/contract/replicas.h"
#include "src/data/change_stream.h"
#include "src/data/rdb_writer.h"
#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/exec/following.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/metrics/stats.h"
#include "src/replication/spool_file.h"
#include "src/script/scripts.h"
#include "src/settings/config.h"
#include "storage/check.h"

namespace ingot::replication {

using contract::Replica;
using Done = std::move_only_function<void(std::optional<std::string>)>;
using Got = data::Backlog::Reader::Got;
using Steady = std::chrono::steady_clock;

namespace {

// While an RDB of which the length must be known is made, the client hears that it is.
constexpr std::chrono::seconds kSignOfLife{1};

}  // namespace

int64_t heard_ms(const contract::Client& client, int64_t now_ms) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  const bool known = getsockopt(client.fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0;
  return std::max(client.replica->acked_ms.load(),
                  known ? now_ms - static_cast<int64_t>(info.tcpi_last_data_recv) : 0);
}

struct FollowerSource::State : std::enable_shared_from_this<State> {
  State(exec::Services& with, exec::Writer& by, std::shared_ptr<contract::Client> whom,
        contract::FollowRequest asked)
      : services(with), writer(by), client(std::move(whom)), request(std::move(asked)) {}

  enum class Phase : uint8_t { kBegin, kSpool, kSendSpool, kRdb, kLoads, kStream, kEnd };

  // --- on the writer's thread, between groups
  std::string begin();
  std::string begin_full_sync();
  // --- in the pool
  std::optional<std::string> spool_piece();
  std::optional<std::string> rdb_piece();
  void read_stream(net::IoThread& thread, Done done);
  void end_rdb();
  void enter_stream();
  uint64_t note_lag();

  void in_pool(data::Work work, net::IoThread& thread, Done done,
               std::optional<std::string> (State::*step)());

  exec::Services& services;
  exec::Writer& writer;
  const std::shared_ptr<contract::Client> client;
  const contract::FollowRequest request;
  Replica& replica = *client->replica;
  std::atomic<bool> abandoned{false};
  std::atomic<int64_t> moved_ms{0};  // Unix; when a piece was last asked for

  Phase phase = Phase::kBegin;
  std::unique_ptr<data::RdbWriter> rdb;
  std::unique_ptr<SpoolFile> spool;
  std::string mark;  // behind an RDB of unknown length; empty: its length was told
  std::unique_ptr<data::Backlog::Reader> reader;
  std::atomic<uint64_t> offset{0};    // of the reader
  std::atomic<uint64_t> forgiven{0};  // of its lag, see is_too_far_behind()
  // Its I/O thread's:
  std::optional<Steady::time_point> over_soft_since;
};

std::string FollowerSource::State::begin() {
  data::ChangeStream& changes = services.data.changes;
  if (storage::Status status = changes.turn_on(); !status.ok()) {
    phase = Phase::kEnd;
    return "-ERR Can't begin the stream of changes: " + status.message() + "\r\n";
  }
  if (request.offset) {
    reader = changes.resume(request.id, *request.offset);
    if (reader) {
      offset = *request.offset;
      enter_stream();
      replica.state = Replica::State::kOnline;
      metrics::add(services.data.stats.partial_syncs);
      metrics::log::notice("Partial resynchronization request from {} accepted, from offset {}",
                           client->address, *request.offset + 1);
      return replica.takes_new_id ? fmt::format("+CONTINUE {}\r\n", changes.place().id)
                                  : "+CONTINUE\r\n";
    }
    metrics::add(services.data.stats.refused_partial_syncs);
  }
  metrics::add(services.data.stats.full_syncs);
  return begin_full_sync();
}

std::string FollowerSource::State::begin_full_sync() {
  data::ChangeStream& changes = services.data.changes;
  const data::ChangeStream::Place place = changes.place();
  // What a master tells is passed on as it is, and selects nothing for those who come here.
  if (!services.following.writer) changes.select_anew();
  reader = changes.read_from(place.offset);
  INGOT_CHECK(reader != nullptr);  // a backlog can always be read from its end
  offset = place.offset;
  data::RdbWriter::Fields aux;
  if (place.db >= 0) aux.emplace_back("repl-stream-db", std::to_string(place.db));
  aux.emplace_back("repl-id", place.id);
  aux.emplace_back("repl-offset", std::to_string(place.offset));
  std::vector<std::string> functions;
  if (replica.wants_functions) {
    for (const auto& [name, library] : services.scripts.libraries()->all()) {
      functions.push_back(library->code);
    }
  }
  rdb = std::make_unique<data::RdbWriter>(
      services.data, replica.wants_data ? services.data.store.view() : nullptr, std::move(aux),
      std::move(functions),
      replica.is_ingot ? data::RdbReaderKind::kIngot : data::RdbReaderKind::kRedis);
  replica.state = Replica::State::kReceives;
  metrics::log::notice("Full resync requested by replica {}: an RDB of offset {} follows",
                       client->address, place.offset);
  std::string head;
  if (request.is_psync) head = fmt::format("+FULLRESYNC {} {}\r\n", place.id, place.offset);
  if (replica.takes_mark) {
    phase = Phase::kRdb;
    mark = data::ChangeStream::new_id();
    return head + "$EOF:" + mark + "\r\n";
  }
  phase = Phase::kSpool;
  return head + '\n';
}

// Redis takes nothing behind a mark before it has acknowledged what came in front of it.
void FollowerSource::State::end_rdb() {
  rdb.reset();
  spool.reset();
  const bool waits = !mark.empty();
  if (replica.wants_rdb_only || waits) {
    phase = replica.wants_rdb_only ? Phase::kEnd : Phase::kLoads;
  } else {
    enter_stream();
  }
  replica.acked_ms = services.data.store.now_ms();
  replica.state = waits ? Replica::State::kLoads : Replica::State::kOnline;
}

void FollowerSource::State::enter_stream() {
  phase = Phase::kStream;
  forgiven = std::numeric_limits<uint64_t>::max();
  (void)note_lag();
}

uint64_t FollowerSource::State::note_lag() {
  const uint64_t told = services.replicas.told;
  const uint64_t lag = told - std::min(told, offset.load());
  if (lag < forgiven) forgiven = lag;
  return lag;
}

std::optional<std::string> FollowerSource::State::rdb_piece() {
  std::string piece;
  bool more = true;
  while (more && piece.empty() && !abandoned) more = rdb->next(&piece);
  if (!rdb->status().ok()) {
    metrics::log::warning("Can't send an RDB: {}", rdb->status().message());
    return std::nullopt;
  }
  if (!more) {
    piece += mark;
    end_rdb();
  }
  return piece;
}

std::optional<std::string> FollowerSource::State::spool_piece() {
  if (phase == Phase::kSendSpool) {
    std::optional<std::string> piece = spool->read();
    if (piece && spool->at_end()) end_rdb();
    return piece;
  }
  storage::Status status;
  if (!spool) {
    const auto settings = services.data.config.settings();
    spool = SpoolFile::open(settings->dir, settings->min_free_disk, &status);
  }
  const auto until = std::chrono::steady_clock::now() + kSignOfLife;
  std::string piece;
  bool more = true;
  while (status.ok() && more && !abandoned && std::chrono::steady_clock::now() < until) {
    piece.clear();
    more = rdb->next(&piece);
    status = rdb->status();
    if (status.ok()) status = spool->append(piece);
  }
  if (!status.ok()) {
    metrics::log::warning("Can't send an RDB: {}", status.message());
    return std::nullopt;
  }
  if (more) return "\n";
  phase = Phase::kSendSpool;
  return fmt::format("${}\r\n", spool->bytes());
}

void FollowerSource::State::in_pool(data::Work work, net::IoThread& thread, Done done,
                                    std::optional<std::string> (State::*step)()) {
  services.data.readers.submit(
      [self = shared_from_this(), &thread, step, done = std::move(done)]() mutable {
        auto piece = (self.get()->*step)();
        thread.post([piece = std::move(piece), done = std::move(done)]() mutable {
          done(std::move(piece));
        });
      },
      work);
}

void FollowerSource::State::read_stream(net::IoThread& thread, Done done) {
  services.data.readers.submit(
      [self = shared_from_this(), &thread, done = std::move(done)]() mutable {
        if (self->abandoned) return;
        std::optional<std::string> piece(std::in_place);
        const Got got = self->reader->read(&*piece);
        if (got == Got::kNothing) {
          self->services.data.changes.when_beyond(
              self->reader->offset(), [self, &thread, done = std::move(done)]() mutable {
                self->read_stream(thread, std::move(done));
              });
          return;
        }
        self->offset = self->reader->offset();
        (void)self->note_lag();
        if (got == Got::kGone) piece.reset();
        thread.post([piece = std::move(piece), done = std::move(done)]() mutable {
          done(std::move(piece));
        });
      });
}

FollowerSource::FollowerSource(exec::Services& services, exec::Writer& writer,
                               std::shared_ptr<contract::Client> client,
                               contract::FollowRequest request)
    : state_(std::make_shared<State>(services, writer, std::move(client), std::move(request))) {}

FollowerSource::~FollowerSource() {
  state_->abandoned = true;
}

void FollowerSource::next(net::IoThread& thread, Done done) {
  state_->moved_ms = state_->services.data.store.now_ms();
  using Phase = State::Phase;
  switch (state_->phase) {
    case Phase::kBegin:
      return state_->writer.between_groups(
          [state = state_, &thread, done = std::move(done)]() mutable {
            thread.post([head = state->begin(), done = std::move(done)]() mutable {
              done(std::move(head));
            });
          });
    case Phase::kSpool:
    case Phase::kSendSpool:
      return state_->in_pool(data::Work::kLong, thread, std::move(done), &State::spool_piece);
    case Phase::kRdb:
      return state_->in_pool(data::Work::kLong, thread, std::move(done), &State::rdb_piece);
    case Phase::kLoads: {
      if (state_->replica.state == Replica::State::kOnline) {
        state_->enter_stream();
        return state_->read_stream(thread, std::move(done));
      }
      auto shared = std::make_shared<Done>(std::move(done));
      state_->replica.on_loaded = [state = std::weak_ptr(state_), &thread, shared] {
        const auto alive = state.lock();
        if (!alive) return;
        alive->enter_stream();
        alive->read_stream(thread, std::move(*shared));
      };
      return;
    }
    case Phase::kStream:
      return state_->read_stream(thread, std::move(done));
    case Phase::kEnd:
      state_->client->kill();
      return done("");
  }
}

// What it has yet to read is on disk, and output all the same to who sets limits. But for what it
// lacked when it came, and what came while it was sent all of the data: however much there is, it
// could never follow, else. As long as the disk has room for that.
bool FollowerSource::is_too_far_behind() {
  const auto settings = state_->services.data.config.settings();
  const settings::OutputLimit& limit = settings->output_limits[settings::kReplicaClients];
  const uint64_t lag = state_->note_lag();
  state_->replica.unsent = lag;
  const bool is_online = state_->replica.state == Replica::State::kOnline;
  const bool has_room = !state_->services.replicas.disk_is_tight;
  const uint64_t counted = !has_room   ? lag
                           : is_online ? lag - std::min(lag, state_->forgiven.load())
                                       : 0;
  const bool over_soft = limit.soft_bytes != 0 && counted > limit.soft_bytes;
  const Steady::time_point now = Steady::now();
  if (!over_soft) {
    state_->over_soft_since.reset();
  } else if (!state_->over_soft_since) {
    state_->over_soft_since = now;
  }
  const bool over_hard = limit.hard_bytes != 0 && counted > limit.hard_bytes;
  const std::chrono::seconds soft_time(limit.soft_seconds);
  if (!over_hard && (!over_soft || now - *state_->over_soft_since <= soft_time)) return false;
  metrics::log::warning("Replica {} is {} bytes behind and is cut", state_->client->address, lag);
  return true;
}

bool FollowerSource::expired() {
  const auto settings = state_->services.data.config.settings();
  const int64_t now_ms = state_->services.data.store.now_ms();
  // One that acknowledges is there, however slow its disk makes it.
  const int64_t alive_ms = std::max(state_->moved_ms.load(), heard_ms(*state_->client, now_ms));
  if (now_ms - alive_ms > settings->repl_timeout * 1000) return true;
  return state_->replica.state != Replica::State::kWaits && is_too_far_behind();
}

}  // namespace ingot::replication

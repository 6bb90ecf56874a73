// Waiting for replicas, with all changes held back.
#include "src/server/departure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "src/contract/client.h"
#include "src/contract/replicas.h"
#include "src/data/change_stream.h"
#include "src/data/store.h"
#include "src/exec/client_pause.h"
#include "src/exec/writer.h"
#include "src/metrics/log.h"
#include "src/server/info_replication.h"
#include "src/server/process.h"
#include "src/settings/config.h"

namespace ingot::server {

using contract::Replica;

namespace {

constexpr std::chrono::milliseconds kLook{20};  // between two looks at what replicas have
constexpr std::string_view kCalledOff = "-ERR Errors trying to SHUTDOWN. Check logs.\r\n";

int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Those that do not have all up to `offset`. Who only wanted the data will never say that it has.
std::vector<std::shared_ptr<contract::Client>> lagging(exec::Services& services, uint64_t offset) {
  auto behind = services.replicas.all();
  std::erase_if(behind, [&](const auto& client) {
    return client->replica->wants_rdb_only || client->replica->acked >= offset;
  });
  return behind;
}

void log_lag(exec::Services& services, uint64_t offset) {
  const size_t replicas = services.replicas.size();
  if (replicas == 0) return;
  const auto behind = lagging(services, offset);
  const int64_t now_ms = services.data.store.now_ms();
  for (const auto& client : behind) {
    const Replica& replica = *client->replica;
    const bool is_online = replica.state == Replica::State::kOnline;
    metrics::log::warning("Lagging replica {} reported offset {} behind master, lag={}, state={}.",
                          client->address, offset - replica.acked,
                          is_online ? (now_ms - replica.acked_ms) / 1000 : 0,
                          state_name(replica.state));
  }
  metrics::log::notice("{} of {} replicas are in sync when shutting down.",
                       replicas - std::min(replicas, behind.size()), replicas);
}

}  // namespace

// Of one who has asked: given when the server goes on serving, or ends.
struct Departure::Answer {
  std::mutex mutex;
  // By mutex:
  std::optional<std::string> bytes;
  net::IoThread* thread = nullptr;  // null: it is not waited for
  std::move_only_function<void(std::optional<std::string>)> done;
  bool is_gone = false;

  void give(std::string what) {
    const std::lock_guard lock(mutex);
    bytes = std::move(what);
    if (is_gone || thread == nullptr) return;
    thread->post([done = std::move(done), piece = std::exchange(*bytes, {})]() mutable {
      done(std::move(piece));
    });
  }
};

class Departure::AnswerSource final : public net::BodySource {
 public:
  explicit AnswerSource(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  ~AnswerSource() override {
    const std::lock_guard lock(answer_->mutex);
    answer_->is_gone = true;
    answer_->done = {};
  }

  void next(net::IoThread& thread,
            std::move_only_function<void(std::optional<std::string>)> done) override {
    std::unique_lock lock(answer_->mutex);
    if (!answer_->bytes) {
      answer_->thread = &thread;
      answer_->done = std::move(done);
      return;
    }
    std::string piece = std::exchange(*answer_->bytes, {});
    lock.unlock();
    done(std::move(piece));
  }

 private:
  const std::shared_ptr<Answer> answer_;
};

std::unique_ptr<net::BodySource> Departure::ask(bool now) {
  auto answer = std::make_shared<Answer>();
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back(answer);
    if (step_ == Step::kServes) {
      step_ = Step::kAsked;
      now_ = now;
    }
  }
  wake_.notify_all();
  return std::make_unique<AnswerSource>(std::move(answer));
}

bool Departure::insist() {
  const std::lock_guard lock(mutex_);
  if (step_ == Step::kServes) return false;
  now_ = true;
  return true;
}

bool Departure::call_off() {
  {
    const std::lock_guard lock(mutex_);
    if (step_ != Step::kAsked) return false;
    step_ = Step::kServes;
    until_ms_.reset();
  }
  wake_.notify_all();
  metrics::log::notice("Shutdown manually aborted.");
  answer_all(/*called_off=*/true);
  return true;
}

void Departure::answer_all(bool called_off) {
  std::vector<std::shared_ptr<Answer>> answers;
  {
    const std::lock_guard lock(mutex_);
    answers = std::exchange(answers_, {});
  }
  for (const auto& answer : answers) answer->give(called_off ? std::string(kCalledOff) : "");
}

bool Departure::is_asked_for() const {
  const std::lock_guard lock(mutex_);
  return step_ != Step::kServes;
}

std::optional<int64_t> Departure::left_ms() const {
  const std::lock_guard lock(mutex_);
  if (!until_ms_) return std::nullopt;
  return std::max<int64_t>(*until_ms_ - steady_ms(), 0);
}

void Departure::wait(exec::Services& services, exec::Writer& writer) {
  while (true) {
    bool now = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return step_ == Step::kAsked; });
      now = now_;
    }
    metrics::log::warning("User requested shutdown...");
    notify_systemd("STOPPING=1");
    const uint64_t offset = now ? services.replicas.told.load() : let_catch_up(services, writer);
    bool ends = false;
    {
      const std::lock_guard lock(mutex_);
      until_ms_.reset();
      ends = step_ == Step::kAsked;
      if (ends) step_ = Step::kEnds;
    }
    if (ends) {
      answer_all(/*called_off=*/false);
      return log_lag(services, offset);
    }
    writer.between_groups([&services] { services.pause.end_shutdown(); });
  }
}

// Until the replicas have all that is committed now, their time is over, or it is called off. The
// offset that they are to have.
uint64_t Departure::let_catch_up(exec::Services& services, exec::Writer& writer) {
  const int64_t timeout_ms = services.data.config.settings()->shutdown_timeout * 1000;
  if (timeout_ms == 0 || services.replicas.size() == 0) return services.replicas.told;
  // The writer may be busy for long, with a script, and is not waited for longer.
  const auto target = std::make_shared<std::atomic<uint64_t>>(std::numeric_limits<uint64_t>::max());
  writer.between_groups([&services, target] {
    services.pause.begin_shutdown();
    *target = services.data.changes.place().offset;
  });
  writer.ask_for_acks();
  const int64_t until_ms = steady_ms() + timeout_ms;
  std::unique_lock lock(mutex_);
  until_ms_ = until_ms;
  bool is_told = false;
  while (step_ == Step::kAsked && !now_ && steady_ms() < until_ms &&
         !lagging(services, *target).empty()) {
    if (!std::exchange(is_told, true)) {
      metrics::log::notice("Waiting for replicas before shutting down.");
    }
    wake_.wait_for(lock, kLook);
  }
  const uint64_t offset = *target;
  return offset == std::numeric_limits<uint64_t>::max() ? services.replicas.told.load() : offset;
}

}  // namespace ingot::server

// An I/O thread's life: its loop, its tasks and ticks, and the connections it adopts and closes.
#include "net/io_loop.h"

#include <pthread.h>

#include <chrono>
#include <string>
#include <utility>

#include "net/addresses.h"
#include "net/batch_pool.h"
#include "net/connection_impl.h"

namespace ingot::net {
namespace {

constexpr auto kTick = std::chrono::milliseconds(500);
constexpr size_t kSpares = 64;
constexpr size_t kSpareBytes = 1024;
constexpr size_t kSpareBytesMax = 64 * 1024;

thread_local const IoLoop* current_loop = nullptr;

}  // namespace

// The hint of one thread spares Asio its wake-ups of others.
IoLoop::IoLoop(int index, ServerState& state)
    : index_(index),
      state_(state),
      context_(1),
      handshakes_(executor(), state),
      work_(executor()),
      timer_(executor()) {}

IoLoop::~IoLoop() = default;

void IoLoop::start() {
  thread_ = std::thread([this] { run(); });
}

void IoLoop::run() {
  pthread_setname_np(pthread_self(), ("io-" + std::to_string(index_)).c_str());
  current_loop = this;
  const BatchPool pool;
  context_.run();
  std::vector<std::move_only_function<void()>> unrun;
  {
    const std::lock_guard lock(tasks_mutex_);
    stopped_ = true;
    unrun.swap(tasks_);
  }
  unrun.clear();  // here, and not under the lock: what tasks own may post
  current_loop = nullptr;
}

void IoLoop::begin_stop(int grace_ms) {
  if (thread_.joinable()) {
    asio::post(context_, [this, grace_ms] { stop_connections(grace_ms); });
  } else {
    const std::lock_guard lock(tasks_mutex_);
    stopped_ = true;
  }
}

void IoLoop::join() {
  if (thread_.joinable()) thread_.join();
}

void IoLoop::stop_connections(int grace_ms) {
  stopping_ = true;
  if (connections_.empty()) return context_.stop();
  if (grace_ms <= 0) return close_all();
  for (const auto& connection : connections_) connection->close_after_flush();
  timer_.expires_after(std::chrono::milliseconds(grace_ms));
  timer_.async_wait([this](const ErrorCode& error) {
    if (!error) close_all();
  });
}

void IoLoop::close_all() {
  for (const auto& connection : connections_) connection->close_for("The server is shutting down");
}

void IoLoop::post(std::move_only_function<void()> task) {
  {
    const std::lock_guard lock(tasks_mutex_);
    if (stopped_) return;
    tasks_.push_back(std::move(task));
    if (tasks_.size() > 1) return;  // whoever came first has woken the thread
  }
  asio::post(context_, [this] { run_tasks(); });
}

bool IoLoop::is_current() const {
  return current_loop == this;
}

SharedBytes IoLoop::share(SharedBytes bytes) {
  struct Counted {
    Counted(ServerState& its_state, SharedBytes its_bytes)
        : state(its_state), bytes(std::move(its_bytes)) {
      state.output_bytes.fetch_add(bytes->size(), std::memory_order_relaxed);
    }
    ~Counted() { state.output_bytes.fetch_sub(bytes->size(), std::memory_order_relaxed); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

    ServerState& state;
    SharedBytes bytes;
  };
  auto counted = std::make_shared<Counted>(state_, std::move(bytes));
  const std::string* const text = counted->bytes.get();
  return {std::move(counted), text};
}

void IoLoop::run_tasks() {
  {
    const std::lock_guard lock(tasks_mutex_);
    running_tasks_.swap(tasks_);
  }
  for (auto& task : running_tasks_) task();
  running_tasks_.clear();
}

void IoLoop::adopt(Socket socket, Origin origin) {
  state_.adopted.fetch_add(1, std::memory_order_relaxed);
  asio::post(context_, [this, socket = std::move(socket), origin = std::move(origin)]() mutable {
    state_.adopted.fetch_sub(1, std::memory_order_relaxed);
    if (!stopping_) welcome(std::move(socket), origin);
  });
}

void IoLoop::welcome(Socket socket, const Origin& origin) {
  Addresses addresses;
  if (origin.unix_path.empty()) {
    ErrorCode gone;
    addresses = tcp_addresses(socket, gone);
    if (gone) return;
    tune_tcp(socket, state_.limits.tcp_keepalive_seconds.load(std::memory_order_relaxed));
  } else {
    const std::string name = origin.unix_path + ":0";
    addresses = {.peer = name, .local = name, .peer_is_local = true};
  }
  const bool peer_is_local = addresses.peer_is_local;
  auto tls = origin.tls ? std::make_unique<TlsStream>(origin.tls, socket.native_handle()) : nullptr;
  auto connection = std::make_shared<ConnectionImpl>(*this, std::move(socket), std::move(addresses),
                                                     std::move(tls));
  connections_.push_back(connection);
  connection->set_slot(connections_.size() - 1);
  connection->start(state_.options.welcome(*connection, peer_is_local));
  arm_tick();
}

void IoLoop::remove(ConnectionImpl& connection) {
  watched_.erase(&connection);
  const size_t slot = connection.slot();
  if (slot + 1 != connections_.size()) {
    std::swap(connections_[slot], connections_.back());
    connections_[slot]->set_slot(slot);
  }
  connections_.pop_back();
  if (stopping_ && connections_.empty()) context_.stop();
}

void IoLoop::arm_tick() {
  if (tick_armed_ || stopping_) return;
  tick_armed_ = true;
  timer_.expires_after(kTick);
  timer_.async_wait([this](const ErrorCode& error) {
    tick_armed_ = false;
    if (!error && !stopping_) tick();
  });
}

// Idle connections cost nothing here unless `timeout` is set.
void IoLoop::tick() {
  const int64_t now_ms = steady_now_ms();
  if (state_.limits.idle_timeout_seconds.load(std::memory_order_relaxed) > 0) {
    for (const auto& connection : connections_) connection->close_if_idle(now_ms);
  }
  std::erase_if(watched_, [&](ConnectionImpl* connection) { return !connection->on_tick(now_ms); });
  if (!connections_.empty()) arm_tick();
}

std::string IoLoop::take_spare() {
  std::string spare;
  if (spares_.empty()) {
    spare.reserve(kSpareBytes);
  } else {
    spare = std::move(spares_.back());
    spares_.pop_back();
  }
  return spare;
}

void IoLoop::give_spare(std::string&& spare) {
  if (spare.capacity() < kSpareBytes || spare.capacity() > kSpareBytesMax) return;
  if (spares_.size() == kSpares) return;
  spare.clear();
  spares_.push_back(std::move(spare));
}

}  // namespace ingot::net

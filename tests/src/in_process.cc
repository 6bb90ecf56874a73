// Building the executor on threads that the test plays, and running pipelines through it.
#include "tests/src/in_process.h"

#include <chrono>
#include <deque>
#include <future>
#include <thread>

#include "storage/check.h"

namespace ingot::test {

FakeThread::FakeThread()
    : thread_([this] {
        std::unique_lock lock(mutex_);
        while (true) {
          wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
          if (tasks_.empty()) return;
          auto tasks = std::exchange(tasks_, {});
          lock.unlock();
          for (auto& task : tasks) task();
          tasks.clear();
          lock.lock();
        }
      }) {}

FakeThread::~FakeThread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void FakeThread::post(std::move_only_function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_all();
}

InProcess::InProcess(std::unique_ptr<storage::Engine> engine, int readers) {
  storage::Status status;
  store_ = data::Store::open(
      std::move(engine), 16, [this] { return now_ms.load(); }, &status);
  INGOT_CHECK(status.ok());
  collector_ = std::make_unique<data::Collector>(*store_);
  changes_ = data::ChangeStream::open(store_->engine(), backlog_.file("backlog"),
                                      /*backlog_bytes=*/1 << 20,
                                      /*follows=*/false, &status);
  INGOT_CHECK(status.ok());
  readers_ = std::make_unique<data::ReaderPool>(readers);
  services_.reset(new exec::Services{.data = {.store = *store_,
                                              .readers = *readers_,
                                              .collector = *collector_,
                                              .changes = *changes_,
                                              .config = config_,
                                              .stats = stats_},
                                     .clients = clients_,
                                     .users = users_,
                                     .server = stub_,
                                     .table = table_,
                                     .channels = channels_,
                                     .tracking = tracking_,
                                     .couriers = couriers_,
                                     .scripts = scripts_,
                                     .pause = pause_,
                                     .replicas = replicas_,
                                     .following = following_});
  net::IoThread* const thread = &thread_;
  couriers_.serve({&thread, 1});
  writer_ = std::make_unique<exec::Writer>(*services_, exec::FsyncPolicy::kNever);
  stub_.writer = writer_.get();
  writer_->start();
  collector_->start();
}

InProcess::~InProcess() {
  stop();
}

void InProcess::stop() {
  writer_->stop();
  collector_->stop();
  readers_.reset();
}

class InProcessClient::FakeConnection : public net::Connection {
 public:
  explicit FakeConnection(net::IoThread& thread) : thread_(thread) {}

  net::IoThread& thread() override { return thread_; }
  const std::string& peer_address() const override { return address_; }
  const std::string& local_address() const override { return address_; }
  int fd() const override { return -1; }
  std::string& out() override { return out_; }
  void send_body(std::unique_ptr<net::BodySource> source) override {
    bodies_.push_back({.before = std::exchange(out_, {}), .source = std::move(source)});
    if (bodies_.size() == 1) take_bodies();
  }
  void send_shared(net::SharedBytes bytes) override { out_ += *bytes; }
  void flush() override {}
  void pause_reading() override {}
  void resume_reading() override {}
  void hold_input(uint64_t) override {}
  bool may_hold_input(uint64_t) const override { return true; }
  void hold_output(uint64_t) override {}
  void close_after_flush() override {}
  void close() override {
    closed = true;
    set_busy(false);
  }
  void set_idle_exempt(bool) override {}
  void set_listens(Listens) override {}
  void set_authenticated(bool) override {}
  // The session says so last, when all is answered but for what bodies still lack.
  void set_busy(bool busy) override {
    session_busy_ = busy;
    tell_if_answered();
  }

  void begin() {
    std::lock_guard lock(mutex_);
    busy_ = true;
  }
  std::atomic<bool> closed{false};

  std::string wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return !busy_; });
    return std::exchange(answered_, {});
  }

 private:
  struct Body {
    std::string before;  // what is sent first
    std::unique_ptr<net::BodySource> source;
  };

  // A client that reads on; one whose body cannot be completed is cut.
  void take_bodies() {
    sent_ += std::exchange(bodies_.front().before, {});
    bodies_.front().source->next(thread_, [this](std::optional<std::string> piece) {
      if (!piece) {
        bodies_.clear();
        return close();
      }
      sent_ += *piece;
      if (piece->empty()) bodies_.pop_front();
      bodies_.empty() ? tell_if_answered() : take_bodies();
    });
  }

  void tell_if_answered() {
    if (!bodies_.empty()) return;  // it is not all there yet
    std::lock_guard lock(mutex_);
    if (!session_busy_) answered_ = std::exchange(sent_, {}) + std::exchange(out_, {});
    busy_ = session_busy_;
    idle_.notify_all();
  }

  net::IoThread& thread_;
  std::deque<Body> bodies_;    // the thread's: not taken yet, in their order
  std::string sent_;           // the thread's: what came before them
  bool session_busy_ = false;  // the thread's
  std::string address_ = "127.0.0.1:1";
  std::string out_;  // the thread's
  std::mutex mutex_;
  std::condition_variable idle_;
  bool busy_ = false;     // by mutex_
  std::string answered_;  // by mutex_
};

InProcessClient::InProcessClient(InProcess& server)
    : server_(server), connection_(std::make_unique<FakeConnection>(server.thread_)) {
  auto client =
      std::make_shared<contract::Client>(server.clients_.next_id(), "127.0.0.1:1", "127.0.0.1:2",
                                         -1, false, server.now_ms, server.users_.default_account());
  client->authenticated = true;
  session_ =
      std::make_shared<exec::Session>(server.services(), *server.writer_, *connection_, client);
  server.clients_.add(client);
}

InProcessClient::~InProcessClient() {
  on_thread([this] { session_->on_close(""); });
}

void InProcessClient::on_thread(std::move_only_function<void()> task) {
  std::promise<void> done;
  server_.thread_.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void InProcessClient::tell(void (net::Handler::*what)()) {
  on_thread([this, what] { ((*session_).*what)(); });
}

bool InProcessClient::is_closed() const {
  return connection_->closed;
}

std::string InProcessClient::pipeline(const std::vector<Line>& lines) {
  send(lines);
  return receive();
}

std::string InProcessClient::receive() {
  return connection_->wait();
}

void InProcessClient::let_collector_start() {
  const data::Collector& collector = server_.services().data.collector;
  const uint64_t before = collector.reclaimed();
  pipeline({{"SELECT", "15"}, {"SET", "dropped", "1"}, {"FLUSHDB"}, {"SELECT", "0"}});
  while (collector.reclaimed() == before) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void InProcessClient::send(const std::vector<Line>& lines) {
  auto batch = std::make_shared<net::CommandBatch>();
  size_t bytes = 0;
  size_t words = 0;
  for (const Line& line : lines) {
    words += line.size();
    for (const std::string& word : line) bytes += word.size();
  }
  batch->buffer = std::make_unique<char[]>(bytes + 1);
  batch->buffer_capacity = bytes + 1;
  batch->arg_store.reserve(words);
  char* at = batch->buffer.get();
  for (const Line& line : lines) {
    size_t first = batch->arg_store.size();
    for (const std::string& word : line) {
      std::copy(word.begin(), word.end(), at);
      batch->arg_store.emplace_back(at, word.size());
      at += word.size();
    }
    batch->commands.push_back(
        {.args = std::span<const std::string_view>(batch->arg_store).subspan(first)});
  }
  connection_->begin();
  server_.thread_.post([session = session_, batch] { session->on_commands(batch); });
}

}  // namespace ingot::test

// The server puts the acceptor and the I/O threads together.
#include "net/server.h"

#include <utility>

#include "net/acceptor.h"
#include "net/io_loop.h"
#include "net/server_state.h"

namespace ingot::net {

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : state{.options = std::move(options)},
        loops(make_loops(state)),
        acceptor(pointers(loops), state) {}

  uint64_t sum(uint64_t (IoLoop::*counter)() const) const {
    uint64_t total = 0;
    for (const auto& loop : loops) total += ((*loop).*counter)();
    return total;
  }

  ServerState state;
  const std::vector<std::unique_ptr<IoLoop>> loops;
  Acceptor acceptor;
  bool stopped = false;

 private:
  static std::vector<std::unique_ptr<IoLoop>> make_loops(ServerState& state) {
    std::vector<std::unique_ptr<IoLoop>> loops;
    loops.reserve(static_cast<size_t>(state.options.io_threads));
    for (int i = 0; i < state.options.io_threads; ++i) {
      loops.push_back(std::make_unique<IoLoop>(i, state));
    }
    return loops;
  }
  static std::vector<IoLoop*> pointers(const std::vector<std::unique_ptr<IoLoop>>& loops) {
    std::vector<IoLoop*> result;
    result.reserve(loops.size());
    for (const auto& loop : loops) result.push_back(loop.get());
    return result;
  }
};

Server::Server(ServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Server::~Server() {
  stop();
}

std::string Server::listen(const ListenOptions& options) {
  return impl_->acceptor.listen(options);
}

std::string Server::use_tls(const TlsOptions& options) {
  auto context = TlsContext::make(options);
  if (!context) return context.error();
  impl_->acceptor.use_tls(std::move(*context));
  return {};
}

void Server::start() {
  for (const auto& loop : impl_->loops) loop->start();
  impl_->acceptor.start();
}

void Server::stop(int grace_ms) {
  if (std::exchange(impl_->stopped, true)) return;
  impl_->acceptor.stop();
  for (const auto& loop : impl_->loops) loop->begin_stop(grace_ms);
  for (const auto& loop : impl_->loops) loop->join();
}

Limits& Server::limits() {
  return impl_->state.limits;
}

int Server::io_threads() const {
  return static_cast<int>(impl_->loops.size());
}

IoThread& Server::thread(int index) {
  return *impl_->loops.at(static_cast<size_t>(index));
}

uint64_t Server::output_bytes_total() const {
  return impl_->state.output_bytes.load(std::memory_order_relaxed);
}

uint64_t Server::query_bytes_total() const {
  return impl_->state.query_bytes.load(std::memory_order_relaxed);
}

uint64_t Server::bytes_in() const {
  return impl_->sum(&IoLoop::bytes_in);
}

uint64_t Server::bytes_out() const {
  return impl_->sum(&IoLoop::bytes_out);
}

uint64_t Server::reads() const {
  return impl_->sum(&IoLoop::reads);
}

uint64_t Server::writes() const {
  return impl_->sum(&IoLoop::writes);
}

uint64_t Server::connections_accepted() const {
  return impl_->state.accepted.load(std::memory_order_relaxed);
}

uint64_t Server::output_limit_disconnections() const {
  return impl_->state.output_limit_cuts.load(std::memory_order_relaxed);
}

}  // namespace ingot::net

// Accepting, one exchange after another on each connection, and bounds on all of it.
#include "net/http_server.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <future>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "net/addresses.h"
#include "net/listen_sockets.h"

namespace ingot::net {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Stream = beast::basic_stream<asio::generic::stream_protocol, Executor>;

constexpr auto kPatience = std::chrono::seconds(10);  // for a request, and for its reader
constexpr size_t kRequestBytesMax = 8 << 10;
constexpr size_t kConnectionsMax = 64;
constexpr auto kHttpBackOff = std::chrono::milliseconds(100);

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(const HttpPage& page) : page_(page) {
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "http");
      context_.run();
    });
  }

  ~Impl() {
    context_.stop();
    thread_.join();
  }

  std::string listen(const std::vector<std::string>& bind, uint16_t port) {
    std::string error;
    std::promise<void> done;
    asio::post(context_, [&] {
      error = listen_here(bind, port);
      done.set_value();
    });
    done.get_future().wait();
    return error;
  }

 private:
  using ListenerPtr = std::shared_ptr<ListenSocket>;

  // One client's requests, one after the other.
  class Exchange;
  using Exchanges = std::list<Exchange*>;

  class Exchange : public std::enable_shared_from_this<Exchange> {
   public:
    Exchange(Impl& server, Socket socket) : server_(server), stream_(std::move(socket)) {
      ++server_.connections_;
    }
    ~Exchange() { --server_.connections_; }

    void read() {
      place_ = server_.waiting_.insert(server_.waiting_.end(), this);
      parser_.emplace();
      parser_->header_limit(kRequestBytesMax);
      parser_->body_limit(kRequestBytesMax);
      stream_.expires_after(kPatience);
      http::async_read(stream_, buffer_, *parser_,
                       [self = shared_from_this()](const ErrorCode& error, size_t) {
                         self->stop_waiting();
                         if (!error) self->answer();
                       });
    }

    // While it waits for a request: somebody else needs its place.
    void give_way() {
      stop_waiting();
      stream_.close();
    }

   private:
    void stop_waiting() {
      if (place_) server_.waiting_.erase(*std::exchange(place_, std::nullopt));
    }

    void answer() {
      const auto& request = parser_->get();
      const std::string_view target(request.target().data(), request.target().size());
      const bool known = target.substr(0, target.find('?')) == server_.page_.path;
      const bool is_head = request.method() == http::verb::head;
      const bool allowed = is_head || request.method() == http::verb::get;
      response_ = {};
      response_.version(request.version());
      response_.keep_alive(request.keep_alive());
      response_.set(http::field::content_type, "text/plain; charset=utf-8");
      if (!known) {
        response_.result(http::status::not_found);
        response_.body() = "There is " + server_.page_.path + " here.\n";
      } else if (!allowed) {
        response_.result(http::status::method_not_allowed);
        response_.set(http::field::allow, "GET, HEAD");
      } else {
        response_.set(http::field::content_type, server_.page_.content_type);
        response_.body() = server_.page_.make();
      }
      response_.prepare_payload();
      if (is_head) response_.body().clear();  // its length stays
      stream_.expires_after(kPatience);
      http::async_write(stream_, response_,
                        [self = shared_from_this()](const ErrorCode& error, size_t) {
                          if (error || !self->response_.keep_alive()) return self->close();
                          self->read();
                        });
    }

    void close() {
      ErrorCode ignored;
      stream_.socket().shutdown(Socket::shutdown_send, ignored);
    }

    Impl& server_;
    std::optional<Exchanges::iterator> place_;  // among those that wait
    Stream stream_;
    beast::flat_buffer buffer_;
    std::optional<http::request_parser<http::string_body>> parser_;
    http::response<http::string_body> response_;
  };

  std::string listen_here(const std::vector<std::string>& bind, uint16_t port) {
    constexpr int kBacklog = 64;
    const ListenOptions options{.bind = bind, .port = port, .backlog = kBacklog};
    std::string error = use(options);
    if (error.empty() || port != current_.port) return error;
    // Most likely our own sockets are in the way.
    close_listeners();
    error = use(options);
    if (error.empty()) return error;
    const std::string lost = use(current_);
    return lost.empty() ? error : error + "; then " + lost;
  }

  std::string use(const ListenOptions& options) {
    auto sockets = open_tcp(context_.get_executor(), options, options.port);
    if (!sockets) return sockets.error().text;
    close_listeners();
    for (ListenSocket& socket : *sockets) {
      listeners_.push_back(std::make_shared<ListenSocket>(std::move(socket)));
      accept(listeners_.back());
    }
    current_ = options;
    return {};
  }

  void close_listeners() {
    for (const ListenerPtr& listener : listeners_) listener->close();
    listeners_.clear();
  }

  void accept(const ListenerPtr& listener) {
    listener->async_wait(ListenSocket::wait_read, [this, listener](const ErrorCode& error) {
      if (!error && listener->is_open()) take(listener);
    });
  }

  void take(const ListenerPtr& listener) {
    if (connections_ >= kConnectionsMax && !waiting_.empty()) {
      // Whoever has kept silent for longest may come again.
      waiting_.front()->give_way();
      return asio::post(context_, [this, listener] {
        if (listener->is_open()) accept(listener);
      });
    }
    Socket accepted(context_.get_executor());
    ErrorCode error;
    if (connections_ < kConnectionsMax) {
      listener->accept(accepted, error);
      if (!error) welcome(std::move(accepted));
    }
    // Too many of them, or no descriptors: those who wait do so in the kernel.
    const bool is_full =
        (connections_ >= kConnectionsMax && waiting_.empty()) || (error && !is_would_block(error));
    if (!is_full) return accept(listener);
    auto pause = std::make_shared<asio::steady_timer>(context_, kHttpBackOff);
    pause->async_wait([this, listener, pause](const ErrorCode&) {
      if (listener->is_open()) accept(listener);
    });
  }

  void welcome(Socket accepted) {
    ErrorCode gone;
    const Addresses addresses = tcp_addresses(accepted, gone);
    if (gone || (!addresses.peer_is_local && !page_.serves_others())) return;
    std::make_shared<Exchange>(*this, std::move(accepted))->read();
  }

  const HttpPage& page_;
  size_t connections_ = 0;
  Exchanges waiting_;  // for a request, the longest first
  asio::io_context context_{1};
  asio::executor_work_guard<Executor> work_{context_.get_executor()};
  ListenOptions current_{.bind = {}, .port = 0};
  std::vector<ListenerPtr> listeners_;
  std::thread thread_;
};

HttpServer::HttpServer(HttpPage page) : page_(std::move(page)) {}

HttpServer::~HttpServer() = default;

std::string HttpServer::listen(const std::vector<std::string>& bind, uint16_t port) {
  if (!impl_ && port == 0) return {};
  if (!impl_) impl_ = std::make_unique<Impl>(page_);
  return impl_->listen(bind, port);
}

}  // namespace ingot::net

// A small HTTP server for one page that is made anew for each request, such as /metrics. Once it
// listens it has a thread of its own, on which the page is made, too: a slow one delays nobody
// else.
//
// Threads: construct, listen and destroy from one thread (the composition root, or CONFIG SET under
// its lock).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ingot::net {

struct HttpPage {
  std::string path;          // "/metrics"
  std::string content_type;  // of what make() gives
  std::function<std::string()> make;
  // Whether a client from another machine is answered at all.
  std::function<bool()> serves_others;
};

class HttpServer {
 public:
  explicit HttpServer(HttpPage page);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens on these addresses (ListenOptions::bind) instead of the ones before; port 0: on none.
  // Empty on success, else why; then the old ones stay.
  std::string listen(const std::vector<std::string>& bind, uint16_t port);

 private:
  class Impl;
  const HttpPage page_;
  std::unique_ptr<Impl> impl_;  // null until it is to listen
};

}  // namespace ingot::net

// Connecting to a server, writing commands and taking replies apart.
#include "src/client/resp_client.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace ingot::client {

using Reached = net::SyncClient::Reached;

std::string ServerAddress::text() const {
  return socket.empty() ? fmt::format("{}:{}", host, port) : socket;
}

std::string RespClient::connect(const ServerAddress& address) {
  const Reached reached = address.socket.empty()
                              ? connection_.connect(address.host, address.port, kPatienceMs)
                              : connection_.connect_unix(address.socket);
  if (reached != Reached::kYes) return fmt::format("cannot connect to {}", address.text());
  Reply reply;
  if (!address.password.empty()) {
    const std::string_view user = address.user;
    const bool answered = user.empty() ? call({"AUTH", address.password}, &reply)
                                       : call({"AUTH", user, address.password}, &reply);
    if (!answered) return fmt::format("{} has hung up", address.text());
    if (reply.kind == Reply::Kind::kError) {
      return fmt::format("{} lets nobody in: {}", address.text(), reply.text);
    }
  }
  if (!call({"PING"}, &reply)) {
    return fmt::format("{} does not answer as Ingot or Redis does", address.text());
  }
  if (reply.kind == Reply::Kind::kError) {
    return fmt::format("{} refuses: {}", address.text(), reply.text);
  }
  return {};
}

void RespClient::add(const std::vector<std::string_view>& command) {
  fmt::format_to(std::back_inserter(unsent_), "*{}\r\n", command.size());
  for (const std::string_view argument : command) {
    fmt::format_to(std::back_inserter(unsent_), "${}\r\n", argument.size());
    unsent_.append(argument).append("\r\n");
  }
}

bool RespClient::send() {
  const bool sent = connection_.send(unsent_, kPatienceMs);
  unsent_.clear();
  return sent;
}

bool RespClient::read(Reply* reply, int64_t patience_ms) {
  std::string line;
  if (!connection_.read_line(&line, patience_ms) || line.empty()) return false;
  reply->text = line.substr(1);
  switch (line[0]) {
    case '+':
      reply->kind = Reply::Kind::kStatus;
      return true;
    case '-':
      reply->kind = Reply::Kind::kError;
      return true;
    case ':':
      reply->kind = Reply::Kind::kInteger;
      return true;
    case '*':
      reply->kind = Reply::Kind::kArray;
      return true;
    case '$':
      break;
    default:
      return false;
  }
  int64_t bytes = 0;
  const char* const end = reply->text.data() + reply->text.size();
  if (std::from_chars(reply->text.data(), end, bytes).ptr != end) return false;
  reply->kind = bytes < 0 ? Reply::Kind::kNull : Reply::Kind::kBulk;
  reply->text.clear();
  if (bytes < 0) return true;
  return connection_.read_bytes(static_cast<size_t>(bytes), &reply->text, patience_ms) &&
         connection_.read_line(&line, patience_ms);
}

bool RespClient::call(const std::vector<std::string_view>& command, Reply* reply,
                      int64_t patience_ms) {
  add(command);
  return send() && read(reply, patience_ms);
}

}  // namespace ingot::client

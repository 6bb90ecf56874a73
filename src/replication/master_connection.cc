// The words of the handshake.
#include "src/replication/master_connection.h"

#include <charconv>

#include "net/resp_writer.h"
#include "net/tls.h"
#include "src/metrics/log.h"

namespace ingot::replication {

namespace {

constexpr size_t kIdBytes = 40;
// Whose stream is said to be longer means something else: one more command, and it could be told to
// nobody, for places are numbers of 63 bits to Redis.
constexpr uint64_t kOffsetMax = uint64_t{1} << 62;

int announced_port(const settings::Settings& settings) {
  if (settings.replica_announce_port != 0) return settings.replica_announce_port;
  const bool tls = settings.tls_replication && settings.tls_port != 0;
  return tls ? settings.tls_port : settings.port;
}

// As Redis connects: with the certificate for that, if there is one, and the master's is checked.
std::optional<net::TlsOptions> tls_options(const settings::Settings& settings) {
  if (!settings.tls_replication) return std::nullopt;
  const bool own = !settings.tls_client_cert_file.empty();
  return net::TlsOptions{
      .cert_file = own ? settings.tls_client_cert_file : settings.tls_cert_file,
      .key_file = own ? settings.tls_client_key_file : settings.tls_key_file,
      .key_file_pass = own ? settings.tls_client_key_file_pass : settings.tls_key_file_pass,
      .ca_cert_file = settings.tls_ca_cert_file,
      .ca_cert_dir = settings.tls_ca_cert_dir,
      .is_client = true,
      .protocols = settings.tls_protocols,
      .ciphers = settings.tls_ciphers,
      .ciphersuites = settings.tls_ciphersuites};
}

bool is_number(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

MasterConnection::MasterConnection(const settings::Settings& settings)
    : master_(settings.master),
      user_(settings.masteruser),
      password_(settings.masterauth),
      bind_source_addr_(settings.bind_source_addr),
      announced_ip_(settings.replica_announce_ip),
      announced_port_(announced_port(settings)),
      timeout_ms_(settings.repl_timeout * 1000),
      tls_(tls_options(settings)) {}

std::string MasterConnection::connect() {
  const auto port = static_cast<uint16_t>(master_.port);
  const auto reached = socket_.connect(master_.host, port, timeout_ms_, bind_source_addr_);
  if (reached != net::LinkSocket::Reached::kYes) {
    return "Unable to connect to MASTER";
  }
  return tls_ ? start_tls() : "";
}

std::string MasterConnection::start_tls() {
  auto context = net::TlsContext::make(*tls_);
  if (!context) return "Failed to configure TLS: " + context.error();
  std::string why = socket_.start_tls(std::move(*context), timeout_ms_);
  return why.empty() ? why : "TLS with MASTER failed: " + why;
}

bool MasterConnection::send(std::string_view bytes) {
  return socket_.send(bytes, timeout_ms_);
}

bool MasterConnection::send_command(const std::vector<std::string_view>& words) {
  std::string bytes;
  net::RespWriter writer(bytes, 2);
  writer.array(words.size());
  for (const std::string_view word : words) writer.bulk(word);
  return send(bytes);
}

bool MasterConnection::read_line(std::string* line) {
  do {
    if (!socket_.read_line(line, timeout_ms_)) return false;
  } while (line->empty());
  return true;
}

std::string MasterConnection::shake_hands() {
  std::string line;
  if (!send_command({"PING"}) || !read_line(&line)) {
    const std::string why = socket_.tls_failure();
    return why.empty() ? "MASTER did not answer PING" : "TLS with MASTER failed: " + why;
  }
  const bool is_there = line.starts_with('+') || line.starts_with("-NOAUTH") ||
                        line.starts_with("-NOPERM") ||
                        line.starts_with("-ERR operation not permitted");
  if (!is_there) return "Error reply to PING from master: '" + line + "'";
  if (!password_.empty()) {
    const bool sent = user_.empty() ? send_command({"AUTH", password_})
                                    : send_command({"AUTH", user_, password_});
    if (!sent || !read_line(&line)) return "MASTER did not answer AUTH";
    if (line.starts_with('-')) return "Unable to AUTH to MASTER: " + line;
  }
  const auto tell = [&](const std::vector<std::string_view>& words) {
    if (!send_command(words) || !read_line(&line)) return false;
    if (line.starts_with('-')) {
      metrics::log::notice("(Non critical) Master does not understand REPLCONF {}: {}", words[1],
                           line);
    }
    return true;
  };
  const bool told = tell({"REPLCONF", "listening-port", std::to_string(announced_port_)}) &&
                    (announced_ip_.empty() || tell({"REPLCONF", "ip-address", announced_ip_})) &&
                    tell({"REPLCONF", "capa", "eof", "capa", "psync2", "capa", "ingot"});
  return told ? "" : "MASTER did not answer REPLCONF";
}

MasterConnection::Answer MasterConnection::ask_from(const Position& known, bool to_lead) {
  const bool is_known = !known.id.empty();
  const std::string next = is_known ? std::to_string(known.offset + 1) : "-1";
  std::string line;
  std::vector<std::string_view> words{"PSYNC", is_known ? std::string_view(known.id) : "?", next};
  if (to_lead) words.emplace_back("FAILOVER");
  if (!send_command(words) || !read_line(&line)) {
    return {.error = "MASTER did not answer PSYNC"};
  }
  if (line.starts_with("+CONTINUE")) {
    // Behind it: the id, of a master that tells it.
    std::string id = line.size() == 10 + kIdBytes ? line.substr(10) : "";
    if (!is_known) return {.error = "MASTER goes on with a stream that was not asked for"};
    return {.goes_on = true, .id = std::move(id)};
  }
  constexpr std::string_view kFull = "+FULLRESYNC ";
  const std::string_view rest = std::string_view(line).substr(std::min(kFull.size(), line.size()));
  Position place;
  if (line.starts_with(kFull) && rest.size() > kIdBytes + 1 && rest[kIdBytes] == ' ' &&
      is_number(rest.substr(kIdBytes + 1), &place.offset) && place.offset <= kOffsetMax) {
    place.id = rest.substr(0, kIdBytes);
    return {.full = std::move(place)};
  }
  if (line.starts_with("-NOMASTERLINK") || line.starts_with("-LOADING")) {
    return {.error = "Master is currently unable to PSYNC but should be in the future: " + line};
  }
  return {.error = "Unexpected reply to PSYNC from master: " + line};
}

MasterConnection::Transfer MasterConnection::begin_transfer() {
  Transfer transfer;
  std::string line;
  if (!read_line(&line)) {
    transfer.error = "I/O error reading bulk count from MASTER";
  } else if (line.starts_with('-')) {
    transfer.error = "MASTER aborted replication with an error: " + line;
  } else if (line.starts_with("$EOF:") && line.size() == 5 + kIdBytes) {
    transfer.end_mark = line.substr(5);
  } else if (!line.starts_with('$') ||
             !is_number(std::string_view(line).substr(1), &transfer.bytes)) {
    transfer.error = "Bad protocol from MASTER, the first byte is not '$' (we received '" + line +
                     "'), are you sure the host and port are right?";
  }
  return transfer;
}

}  // namespace ingot::replication

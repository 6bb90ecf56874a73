// The context of files and options, and OpenSSL's answers as those of a socket.
#include "net/tls.h"

#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <sstream>
#include <string_view>
#include <utility>

namespace ingot::net {
namespace {

// The oldest error that OpenSSL has for this thread; the others are dropped.
std::string openssl_error() {
  std::array<char, 256> text = {};
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

struct Protocol {
  std::string_view name;
  int version;
  uint64_t off;
};
constexpr Protocol kProtocols[] = {{"tlsv1", TLS1_VERSION, SSL_OP_NO_TLSv1},
                                   {"tlsv1.1", TLS1_1_VERSION, SSL_OP_NO_TLSv1_1},
                                   {"tlsv1.2", TLS1_2_VERSION, SSL_OP_NO_TLSv1_2},
                                   {"tlsv1.3", TLS1_3_VERSION, SSL_OP_NO_TLSv1_3}};

// False when one of the words is no protocol.
bool use_protocols(SSL_CTX* ctx, const std::string& wanted) {
  uint64_t off = SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1;
  int lowest = TLS1_2_VERSION;
  std::istringstream words(wanted);
  std::string word;
  bool any = false;
  while (words >> word) {
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto* found = std::ranges::find(kProtocols, word, &Protocol::name);
    if (found == std::end(kProtocols)) return false;
    if (!std::exchange(any, true)) {
      for (const Protocol& each : kProtocols) off |= each.off;
      lowest = found->version;
    }
    off &= ~found->off;
    lowest = std::min(lowest, found->version);
  }
  SSL_CTX_set_options(ctx, off);
  // Else the system's own lower bound counts.
  return SSL_CTX_set_min_proto_version(ctx, lowest) == 1;
}

int give_password(char* buffer, int size, int, void* password) {
  const auto& text = *static_cast<const std::string*>(password);
  if (std::cmp_less(size, text.size())) return -1;
  std::ranges::copy(text, buffer);
  return static_cast<int>(text.size());
}

bool use_dh_params(SSL_CTX* ctx, const std::string& path) {
  const std::unique_ptr<BIO, void (*)(BIO*)> file(BIO_new_file(path.c_str(), "r"), BIO_free_all);
  if (!file) return false;
  EVP_PKEY* params = PEM_read_bio_Parameters(file.get(), nullptr);
  if (params == nullptr) return false;
  if (SSL_CTX_set0_tmp_dh_pkey(ctx, params) == 1) return true;  // it owns them
  EVP_PKEY_free(params);
  return false;
}

int verify_mode(TlsOptions::ClientCertificates wanted) {
  switch (wanted) {
    case TlsOptions::ClientCertificates::kNo:
      return SSL_VERIFY_NONE;
    case TlsOptions::ClientCertificates::kOptional:
      return SSL_VERIFY_PEER;
    case TlsOptions::ClientCertificates::kRequired:
      return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  }
  return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}

}  // namespace

class TlsContext::Impl {
 public:
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> ctx{nullptr, SSL_CTX_free};
  bool is_client = false;

  // Empty, or what is wrong.
  std::string set_up(const TlsOptions& options) {
    using ClientCertificates = TlsOptions::ClientCertificates;
    if (options.cert_file.empty()) return "No tls-cert-file configured!";
    if (options.key_file.empty()) return "No tls-key-file configured!";
    const bool no_ca = options.ca_cert_file.empty() && options.ca_cert_dir.empty();
    const bool asks = options.is_client || options.client_certificates != ClientCertificates::kNo;
    if (asks && no_ca) {
      return "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, "
             "tls-replication or tls-auth-clients are enabled!";
    }
    ERR_clear_error();
    is_client = options.is_client;
    ctx.reset(SSL_CTX_new(is_client ? TLS_client_method() : TLS_server_method()));
    if (!ctx) return openssl_error();
    if (!use_protocols(ctx.get(), options.protocols)) {
      return "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' "
             "and 'TLSv1.3'.";
    }
    SSL_CTX_set_options(
        ctx.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (options.prefer_server_ciphers) {
      SSL_CTX_set_options(ctx.get(), SSL_OP_CIPHER_SERVER_PREFERENCE);
    }
    // Ten thousand idle clients own no buffers.
    SSL_CTX_set_mode(ctx.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    cache_sessions(options);
    const int verify = is_client ? SSL_VERIFY_PEER : verify_mode(options.client_certificates);
    SSL_CTX_set_verify(ctx.get(), verify, nullptr);
    return read_files(options);
  }

 private:
  void cache_sessions(const TlsOptions& options) {
    if (!options.session_caching || is_client) {
      SSL_CTX_set_session_cache_mode(ctx.get(), SSL_SESS_CACHE_OFF);
      return;
    }
    constexpr unsigned char kName[] = {'i', 'n', 'g', 'o', 't'};
    SSL_CTX_set_session_cache_mode(ctx.get(), SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(ctx.get(), options.session_cache_entries);
    SSL_CTX_set_timeout(ctx.get(), options.session_cache_seconds);
    SSL_CTX_set_session_id_context(ctx.get(), kName, sizeof kName);
  }

  std::string read_files(const TlsOptions& options) {
    const auto failed = [](const std::string& what) { return what + ": " + openssl_error(); };
    const auto or_null = [](const std::string& text) {
      return text.empty() ? nullptr : text.c_str();
    };
    std::string password = options.key_file_pass;
    SSL_CTX_set_default_passwd_cb(ctx.get(), give_password);
    SSL_CTX_set_default_passwd_cb_userdata(ctx.get(), &password);
    if (SSL_CTX_use_certificate_chain_file(ctx.get(), options.cert_file.c_str()) != 1) {
      return failed("Failed to load certificate: " + options.cert_file);
    }
    if (SSL_CTX_use_PrivateKey_file(ctx.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
      return failed("Failed to load private key: " + options.key_file);
    }
    SSL_CTX_set_default_passwd_cb_userdata(ctx.get(), nullptr);
    const bool has_ca = !options.ca_cert_file.empty() || !options.ca_cert_dir.empty();
    if (has_ca && SSL_CTX_load_verify_locations(ctx.get(), or_null(options.ca_cert_file),
                                                or_null(options.ca_cert_dir)) != 1) {
      return failed("Failed to configure CA certificate(s) file/directory");
    }
    if (options.dh_params_file.empty()) {
      SSL_CTX_set_dh_auto(ctx.get(), 1);
    } else if (!use_dh_params(ctx.get(), options.dh_params_file)) {
      return failed("Failed to load DH params file: " + options.dh_params_file);
    }
    if (!options.ciphers.empty() &&
        SSL_CTX_set_cipher_list(ctx.get(), options.ciphers.c_str()) != 1) {
      return failed("Failed to configure ciphers: " + options.ciphers);
    }
    if (!options.ciphersuites.empty() &&
        SSL_CTX_set_ciphersuites(ctx.get(), options.ciphersuites.c_str()) != 1) {
      return failed("Failed to configure ciphersuites: " + options.ciphersuites);
    }
    return {};
  }
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TlsContext::~TlsContext() = default;

std::expected<std::shared_ptr<const TlsContext>, std::string> TlsContext::make(
    const TlsOptions& options) {
  auto impl = std::make_unique<Impl>();
  if (std::string why = impl->set_up(options); !why.empty()) return std::unexpected(why);
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(impl)));
}

class TlsStream::Session {
 public:
  Session(SSL_CTX* ctx, int fd, bool is_client) : ssl(SSL_new(ctx), SSL_free) {
    if (ssl && SSL_set_fd(ssl.get(), fd) == 1) {
      is_client ? SSL_set_connect_state(ssl.get()) : SSL_set_accept_state(ssl.get());
    } else {
      ssl.reset();  // out of memory
    }
  }
  std::unique_ptr<SSL, void (*)(SSL*)> ssl;
};

TlsStream::TlsStream(std::shared_ptr<const TlsContext> context, int fd)
    : context_(std::move(context)), fd_(fd) {}

TlsStream::~TlsStream() = default;

// Of the call that has just failed.
ErrorCode TlsStream::outcome(int result) {
  const int system_error = errno;
  switch (SSL_get_error(session_->ssl.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return asio::error::would_block;
    case SSL_ERROR_ZERO_RETURN:
      return asio::error::eof;
    case SSL_ERROR_SYSCALL:
      if (ERR_peek_error() == 0) {
        if (system_error == 0) return asio::error::eof;
        return {system_error, boost::system::system_category()};
      }
      [[fallthrough]];
    default:
      error_text_ = openssl_error();
      return asio::error::connection_aborted;
  }
}

bool TlsStream::is_established() const {
  return session_ && session_->ssl && SSL_is_init_finished(session_->ssl.get()) != 0;
}

size_t TlsStream::read_some(void* data, size_t bytes, ErrorCode& error) {
  if (!session_) {
    const TlsContext::Impl& context = *context_->impl_;
    session_ = std::make_unique<Session>(context.ctx.get(), fd_, context.is_client);
    context_ = nullptr;
  }
  SSL* const ssl = session_->ssl.get();
  error = asio::error::no_memory;
  if (ssl == nullptr) return 0;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_read(ssl, data, static_cast<int>(std::min<size_t>(bytes, INT_MAX)));
  error = result > 0 ? ErrorCode() : outcome(result);
  starved_ = result <= 0;
  read_waits_for_room_ = SSL_want_write(ssl);
  return result > 0 ? static_cast<size_t>(result) : 0;
}

size_t TlsStream::write_some(const void* data, size_t bytes, ErrorCode& error) {
  if (!is_established()) {
    write_waits_for_input_ = true;
    error = asio::error::would_block;
    return 0;
  }
  SSL* const ssl = session_->ssl.get();
  ERR_clear_error();
  errno = 0;
  const int result = SSL_write(ssl, data, static_cast<int>(std::min<size_t>(bytes, INT_MAX)));
  error = result > 0 ? ErrorCode() : outcome(result);
  write_waits_for_input_ = SSL_want_read(ssl);
  return result > 0 ? static_cast<size_t>(result) : 0;
}

bool TlsStream::has_input() const {
  return !starved_ && session_ && session_->ssl && SSL_pending(session_->ssl.get()) > 0;
}

size_t TlsStream::held_bytes() const {
  return is_established() && SSL_has_pending(session_->ssl.get()) != 0 ? SSL3_RT_MAX_PACKET_SIZE
                                                                       : 0;
}

void TlsStream::say_goodbye() {
  if (!is_established() || !error_text_.empty()) return;
  SSL* const ssl = session_->ssl.get();
  ERR_clear_error();
  (void)SSL_shutdown(ssl);
  ERR_clear_error();
}

}  // namespace ingot::net

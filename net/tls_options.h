// What TLS is to offer, in the terms of redis.conf's tls- directives. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::net {

struct TlsOptions {
  enum class ClientCertificates : uint8_t { kNo, kOptional, kRequired };

  std::string cert_file;  // PEM, with the chain behind it
  std::string key_file;
  std::string key_file_pass;  // empty: none
  std::string dh_params_file;
  std::string ca_cert_file;  // whose client certificates are taken
  std::string ca_cert_dir;
  ClientCertificates client_certificates = ClientCertificates::kRequired;
  bool is_client = false;    // for connecting: then the server's certificate is always asked for
  std::string protocols;     // "TLSv1.2 TLSv1.3"; empty: these
  std::string ciphers;       // up to TLS 1.2; empty: OpenSSL's
  std::string ciphersuites;  // of TLS 1.3
  bool prefer_server_ciphers = false;
  bool session_caching = true;
  int session_cache_entries = 20480;
  int session_cache_seconds = 300;

  bool operator==(const TlsOptions&) const = default;
};

}  // namespace ingot::net

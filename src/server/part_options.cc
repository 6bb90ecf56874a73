// One structure out of another, field by field.
#include "src/server/part_options.h"

namespace ingot::server {

namespace {

net::TlsOptions::ClientCertificates client_certificates(settings::TlsAuthClients setting) {
  switch (setting) {
    case settings::TlsAuthClients::kNo:
      return net::TlsOptions::ClientCertificates::kNo;
    case settings::TlsAuthClients::kOptional:
      return net::TlsOptions::ClientCertificates::kOptional;
    case settings::TlsAuthClients::kYes:
      return net::TlsOptions::ClientCertificates::kRequired;
  }
  return net::TlsOptions::ClientCertificates::kRequired;
}

}  // namespace

exec::FsyncPolicy policy_of(settings::AppendFsync setting) {
  switch (setting) {
    case settings::AppendFsync::kAlways:
      return exec::FsyncPolicy::kAlways;
    case settings::AppendFsync::kEverysec:
      return exec::FsyncPolicy::kEverySecond;
    case settings::AppendFsync::kNo:
      return exec::FsyncPolicy::kNever;
  }
  return exec::FsyncPolicy::kEverySecond;
}

uint16_t metrics_port(const settings::Settings& settings) {
  return static_cast<uint16_t>(settings.metrics_port);
}

net::ListenOptions listen_options(const settings::Settings& settings) {
  return {.bind = settings.bind,
          .port = static_cast<uint16_t>(settings.port),
          .tls_port = static_cast<uint16_t>(settings.tls_port),
          .backlog = settings.tcp_backlog,
          .unix_path = settings.unixsocket,
          .unix_permissions = settings.unixsocketperm};
}

bool needs_tls(const settings::Settings& settings) {
  return settings.tls_port != 0 || settings.tls_replication;
}

net::TlsOptions tls_options(const settings::Settings& settings) {
  return {.cert_file = settings.tls_cert_file,
          .key_file = settings.tls_key_file,
          .key_file_pass = settings.tls_key_file_pass,
          .dh_params_file = settings.tls_dh_params_file,
          .ca_cert_file = settings.tls_ca_cert_file,
          .ca_cert_dir = settings.tls_ca_cert_dir,
          .client_certificates = client_certificates(settings.tls_auth_clients),
          .protocols = settings.tls_protocols,
          .ciphers = settings.tls_ciphers,
          .ciphersuites = settings.tls_ciphersuites,
          .prefer_server_ciphers = settings.tls_prefer_server_ciphers,
          .session_caching = settings.tls_session_caching,
          .session_cache_entries = settings.tls_session_cache_size,
          .session_cache_seconds = settings.tls_session_cache_timeout};
}

}  // namespace ingot::server

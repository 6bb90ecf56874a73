// One structure out of another, field by field.
#include "src/server/part_options.h"

#include <utility>

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

std::string changed_tls_setting(const settings::Settings& before, const settings::Settings& after) {
  using S = settings::Settings;
  if (before.tls_port != after.tls_port) return "tls-port";
  if (before.tls_replication != after.tls_replication) return "tls-replication";
  constexpr std::pair<const char*, std::string S::*> kTexts[] = {
      {"tls-key-file", &S::tls_key_file},
      {"tls-key-file-pass", &S::tls_key_file_pass},
      {"tls-dh-params-file", &S::tls_dh_params_file},
      {"tls-ca-cert-file", &S::tls_ca_cert_file},
      {"tls-ca-cert-dir", &S::tls_ca_cert_dir},
      {"tls-protocols", &S::tls_protocols},
      {"tls-ciphers", &S::tls_ciphers},
      {"tls-ciphersuites", &S::tls_ciphersuites}};
  for (const auto& [name, text] : kTexts) {
    if (before.*text != after.*text) return name;
  }
  return "tls-cert-file";
}

}  // namespace ingot::server

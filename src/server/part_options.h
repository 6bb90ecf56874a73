// What the settings mean to the parts of the server that know nothing of settings, or have another
// word for it. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "net/server.h"
#include "src/exec/writer.h"
#include "src/settings/settings.h"

namespace ingot::server {

exec::FsyncPolicy policy_of(settings::AppendFsync setting);
uint16_t metrics_port(const settings::Settings& settings);
net::ListenOptions listen_options(const settings::Settings& settings);
// The links to masters are made with the same certificates.
bool needs_tls(const settings::Settings& settings);
net::TlsOptions tls_options(const settings::Settings& settings);
// Of those that TLS is made of, the one that a refused CONFIG SET was about.
std::string changed_tls_setting(const settings::Settings& before, const settings::Settings& after);

}  // namespace ingot::server

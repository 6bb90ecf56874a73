// The sections of INFO, each a function that writes its fields. Any thread.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "net/server.h"
#include "src/exec/services.h"
#include "src/exec/writer.h"
#include "src/server/checkpoints.h"
#include "src/settings/settings.h"
#include "src/types/keyspace.h"

namespace ingot::server {

class TtlSampler;

// What the sections are written from.
struct InfoSource {
  exec::Services& services;
  const exec::Writer& writer;
  const net::Server& net;
  types::KeyReader& keys;
  const settings::Settings& settings;
  TtlSampler& ttl;
  CheckpointSpace checkpoints;
};

// Appends "name:value" lines.
class InfoFields {
 public:
  explicit InfoFields(std::string& out) : out_(out) {}

  template <typename Value>
  void add(std::string_view name, const Value& value) {
    fmt::format_to(std::back_inserter(out_), "{}:{}\r\n", name, value);
  }
  void add(std::string_view name, bool value) { add(name, value ? 1 : 0); }
  void add_real(std::string_view name, double value, int digits = 2) {
    fmt::format_to(std::back_inserter(out_), "{}:{:.{}f}\r\n", name, value, digits);
  }
  // The number, and as "<name>_human" the same for people ("1.50M").
  void add_bytes(std::string_view name, uint64_t bytes);
  void add_zeros(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) add(name, 0);
  }

 private:
  std::string& out_;
};

struct InfoSection {
  std::string_view name;  // as it is asked for
  std::string_view title;
  bool by_default;
  void (*write)(const InfoSource& source, InfoFields& out);
};

std::span<const InfoSection> redis_info_sections();  // in the order of Redis
std::span<const InfoSection> own_info_sections();    // Engine, Threads

}  // namespace ingot::server

// The first line of a script ("#!lua flags=no-writes,allow-oom"), and its name.
#include "src/script/script.h"

#include <openssl/sha.h>

#include <array>
#include <utility>

#include "src/script/shebang.h"

namespace ingot::script {

namespace {

constexpr std::pair<std::string_view, uint32_t> kFlags[] = {
    {"no-writes", flag::kNoWrites},
    {"allow-oom", flag::kAllowOom},
    {"allow-stale", flag::kAllowStale},
    {"no-cluster", flag::kNoCluster},
    {"allow-cross-slot-keys", flag::kAllowCrossSlotKeys}};

std::string read_flags(std::string_view names, uint32_t* flags) {
  if (names.empty()) return {};
  while (true) {
    const size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const uint32_t flag = flag_of(name);
    if (flag == 0) return "ERR Unexpected flag in script shebang: " + std::string(name);
    *flags |= flag;
    if (comma == std::string_view::npos) return {};
    names.remove_prefix(comma + 1);
  }
}

}  // namespace

uint32_t flag_of(std::string_view name) {
  for (const auto& [known, flag] : kFlags) {
    if (name == known) return flag;
  }
  return 0;
}

std::string_view flag_name(uint32_t flag) {
  for (const auto& [name, known] : kFlags) {
    if (flag == known) return name;
  }
  return {};
}

std::string sha1_hex(std::string_view bytes) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::optional<uint32_t> declared_flags(std::string_view body, std::string* error) {
  const auto shebang = read_shebang(body);
  if (!shebang) {
    const bool is_line = body.find('\n') != std::string_view::npos;
    *error = is_line ? "ERR Invalid engine in script shebang" : "ERR Invalid script shebang";
    return std::nullopt;
  }
  if (shebang->engine != "#!lua") {
    *error = "ERR Unexpected engine in script shebang: " + shebang->engine;
    return std::nullopt;
  }
  uint32_t flags = 0;
  for (const std::string& option : shebang->options) {
    if (!option.starts_with("flags=")) {
      *error = "ERR Unknown lua shebang option: " + option;
      return std::nullopt;
    }
    *error = read_flags(option.substr(6), &flags);
    if (!error->empty()) return std::nullopt;
  }
  return flags;
}

std::shared_ptr<const Script> read_script(std::string_view body, std::string* error) {
  auto script = std::make_shared<Script>();
  script->declares = body.starts_with("#!");
  if (script->declares) {
    const auto flags = declared_flags(body, error);
    if (!flags) return nullptr;
    script->flags = *flags;
  }
  script->sha = sha1_hex(body);
  script->body = body;
  return script;
}

}  // namespace ingot::script

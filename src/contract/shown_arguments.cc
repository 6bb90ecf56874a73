// Which arguments of which commands are secret.
#include "src/contract/shown_arguments.h"

#include <algorithm>
#include <iterator>

#include "src/contract/args.h"

namespace ingot::contract {
namespace {

constexpr std::string_view kRedacted = "(redacted)";
constexpr std::string_view kSecretSettings[] = {"requirepass", "masterauth", "masteruser",
                                                "tls-key-file-pass", "tls-client-key-file-pass"};

bool is_secret_setting(std::string_view name) {
  return std::ranges::any_of(kSecretSettings,
                             [&](std::string_view each) { return equals_ignore_case(each, name); });
}

}  // namespace

std::vector<std::string_view> shown_arguments(const CommandRow& row, Args args, size_t most) {
  std::vector<std::string_view> shown(
      args.begin(), args.begin() + static_cast<ptrdiff_t>(std::min(most, args.size())));
  const auto hide = [&](size_t from, size_t count) {
    for (size_t i = from; i < std::min(shown.size(), from + count); ++i) shown[i] = kRedacted;
  };
  // Their words stand wherever the client has put them.
  const auto hide_behind = [&](std::string_view word, size_t count) {
    for (size_t i = 1; i < shown.size(); ++i) {
      if (!equals_ignore_case(args[i], word)) continue;
      hide(i + 1, count);
      i += count;
    }
  };
  const bool is_subcommand = args.size() > 1 && !equals_ignore_case(args[0], row.name);
  if (row.name == "auth") {
    hide(1, shown.size());
  } else if (row.name == "hello") {
    hide_behind("auth", 2);
  } else if (row.name == "migrate") {
    hide_behind("auth", 1);
    hide_behind("auth2", 2);
  } else if (is_subcommand && row.name == "setuser") {
    hide(2, shown.size());
  } else if (is_subcommand && row.name == "set") {
    for (size_t i = 2; i + 1 < shown.size(); i += 2) {
      if (is_secret_setting(args[i])) hide(i + 1, 1);
    }
  }
  return shown;
}

}  // namespace ingot::contract

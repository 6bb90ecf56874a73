// Users in files: the ACL file, a user a line, and the "user" lines of the configuration.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/access/users.h"
#include "src/settings/settings.h"

namespace ingot::access {

// The ACL file that the settings name, absolute; empty: there is none.
std::string acl_file(const settings::Settings& settings);

// The users that a text with a line for each gives; `file` stands in errors. The error names each
// line that is wrong, all in one line, as Redis does.
std::expected<std::map<std::string, User>, std::string> parse_users(std::string_view text,
                                                                    std::string_view file,
                                                                    const RuleContext& context);
// ACL LOAD. With an error nothing has changed.
[[nodiscard]] std::optional<std::string> load_users(Users& users,
                                                    const settings::Settings& settings);
// ACL SAVE: replaces the file, so that whoever reads it, even after a power loss, sees the old or
// the new one. The error is for the log.
[[nodiscard]] std::optional<std::string> save_users(const Users& users,
                                                    const settings::Settings& settings);
// "user name rules" of each user.
std::vector<std::string> user_lines(const Users& users);
// The same for the configuration. The error tells of a user whose line would be read as another
// one, as with a quote in a pattern.
std::expected<std::vector<std::string>, std::string> config_user_lines(const Users& users);

// Why a "user" line of the configuration is wrong. A command that does not exist is no reason yet,
// as in Redis, where a module may bring it.
std::optional<std::string> check_user_line(const CommandIds& ids,
                                           const settings::Settings& settings,
                                           std::span<const std::string> words);

// What the settings say of users: requirepass, "user" lines, the ACL file. With an error, which is
// for the log, the server does not start.
[[nodiscard]] std::optional<std::string> set_up_users(Users& users,
                                                      const settings::Settings& settings);

}  // namespace ingot::access

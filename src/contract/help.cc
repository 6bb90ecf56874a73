// The lines that every HELP begins and ends with, around those of one command.
#include "src/contract/help.h"

#include <string>

namespace ingot::contract {

void reply_help(ReplySink& reply, std::string_view container,
                std::initializer_list<std::string_view> lines) {
  reply.array(lines.size() + 3);
  reply.simple(std::string(container) +
               " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (std::string_view line : lines) reply.simple(line);
  reply.simple("HELP");
  reply.simple("    Prints this help.");
}

}  // namespace ingot::contract

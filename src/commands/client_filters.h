// CLIENT LIST and CLIENT KILL, which choose among all clients.
#pragma once

#include "src/commands/vocabulary.h"

namespace ingot::commands {

void client_list(SessionContext& context, Args args);
void client_kill(SessionContext& context, Args args);

}  // namespace ingot::commands

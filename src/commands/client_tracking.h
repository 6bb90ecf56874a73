// CLIENT TRACKING and its relatives; their rows are among those of CLIENT.
#pragma once

#include "src/commands/vocabulary.h"

namespace ingot::commands {

void client_caching(SessionContext& context, Args args);
void client_getredir(SessionContext& context, Args args);
void client_tracking(SessionContext& context, Args args);
void client_trackinginfo(SessionContext& context, Args args);

}  // namespace ingot::commands

// The words that every file of handlers speaks, so that none has to name where they come from.
#pragma once

#include "src/contract/args.h"
#include "src/contract/context.h"
#include "src/contract/family.h"
#include "src/contract/row.h"
#include "src/types/events.h"

namespace ingot::commands {

namespace acl = contract::acl;
namespace flag = contract::flag;
namespace key = contract::key;
namespace notify = types::notify;
using contract::ArgReader;
using contract::Args;
using contract::CommandRow;
using contract::key_at;
using contract::keys_between;
using contract::ReadContext;
using contract::ReplySink;
using contract::SessionContext;
using contract::WriteContext;

}  // namespace ingot::commands

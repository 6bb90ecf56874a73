// Which clients CLIENT LIST and CLIENT KILL mean.
#include "src/commands/client_filters.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "src/access/client_line.h"
#include "src/access/users.h"
#include "src/contract/client_registry.h"

namespace ingot::commands {

using access::client_line;
using contract::Client;

namespace {

enum class ClientType : uint8_t { kNormal, kReplica, kPubsub, kMaster };

ClientType read_client_type(ArgReader& reader) {
  const auto type = reader.choice<ClientType>({{"normal", ClientType::kNormal},
                                               {"slave", ClientType::kReplica},
                                               {"replica", ClientType::kReplica},
                                               {"pubsub", ClientType::kPubsub},
                                               {"master", ClientType::kMaster}});
  if (!type) reader.fail(fmt::format("ERR Unknown client type '{}'", reader.text()));
  return type.value_or(ClientType::kNormal);
}

ClientType type_of(const Client& client) {
  if (client.follows) return ClientType::kReplica;
  if (client.is_master) return ClientType::kMaster;
  return client.is_subscriber() ? ClientType::kPubsub : ClientType::kNormal;
}

void list_by_id(SessionContext& context, Args ids) {
  std::string text;
  for (const std::string_view word : ids) {
    const std::optional<int64_t> id = contract::parse_integer(word);
    if (!id) return context.reply.error("ERR Invalid client ID");
    if (*id <= 0) continue;
    context.clients.visit(static_cast<uint64_t>(*id), [&](const Client& client) {
      text += client_line(client, context.server.now_ms()) + '\n';
    });
  }
  context.reply.verbatim("txt", text);
}

}  // namespace

void client_list(SessionContext& context, Args args) {
  std::optional<ClientType> type;
  ArgReader reader(args, 2);
  if (reader.left() == 2 && reader.word("type")) {
    type = read_client_type(reader);
  } else if (reader.word("id", 1)) {
    return list_by_id(context, reader.rest());
  }
  if (!reader.done()) return context.reply.error(reader.error());
  std::string text;
  const int64_t now_ms = context.server.now_ms();
  context.clients.for_each([&](const Client& client) {
    if (!type || *type == type_of(client)) text += client_line(client, now_ms) + '\n';
  });
  context.reply.verbatim("txt", text);
}

namespace {

// Whom CLIENT KILL means.
struct KillFilter {
  uint64_t id = 0;  // 0: any
  std::optional<std::string_view> address;
  std::optional<std::string_view> local_address;
  std::optional<ClientType> type;
  access::AccountPtr account;  // null: any
  bool skip_me = true;

  bool matches(const Client& client, const Client& me) const {
    return (id == 0 || client.id == id) && (!address || client.address == *address) &&
           (!local_address || client.local_address == *local_address) &&
           (account == nullptr || client.account() == account) &&
           (!type || *type == type_of(client)) && !(skip_me && client.id == me.id);
  }
};

void read_kill_option(ArgReader& reader, const access::Users& users, KillFilter* filter) {
  if (reader.word("id", 1)) {
    filter->id = static_cast<uint64_t>(reader.integer_between(
        1, std::numeric_limits<int64_t>::max(), "ERR client-id should be greater than 0"));
  } else if (reader.word("type", 1)) {
    filter->type = read_client_type(reader);
  } else if (reader.word("addr", 1)) {
    filter->address = reader.text();
  } else if (reader.word("laddr", 1)) {
    filter->local_address = reader.text();
  } else if (reader.word("user", 1)) {
    const std::string_view name = reader.text();
    filter->account = users.find(name);
    if (filter->account == nullptr) reader.fail(fmt::format("ERR No such user '{}'", name));
  } else if (reader.word("skipme", 1)) {
    const auto skip = reader.choice<bool>({{"yes", true}, {"no", false}});
    if (!skip) reader.fail(contract::error::kSyntax);
    filter->skip_me = skip.value_or(true);
  } else {
    reader.fail(contract::error::kSyntax);
  }
}

// How many connections it ended, its own included, which closes after the reply.
int64_t kill_clients(SessionContext& context, const KillFilter& filter) {
  int64_t killed = 0;
  const auto kill = [&](Client& client) {
    if (client.id > context.newest_client || !filter.matches(client, context.client)) return;
    ++killed;
    if (client.id == context.client.id) {
      context.client.close_after_reply = true;
    } else if (client.kill) {
      client.kill();
    }
  };
  if (filter.id != 0) {
    context.clients.visit(filter.id, kill);
  } else {
    context.clients.for_each(kill);
  }
  return killed;
}

}  // namespace

void client_kill(SessionContext& context, Args args) {
  KillFilter filter;
  if (args.size() == 3) {
    filter.address = args[2];
    filter.skip_me = false;
    if (kill_clients(context, filter) == 0) return context.reply.error("ERR No such client");
    return context.reply.ok();
  }
  ArgReader reader(args, 2);
  while (reader.more()) read_kill_option(reader, context.users, &filter);
  if (reader.failed()) return context.reply.error(reader.error());
  context.reply.integer(kill_clients(context, filter));
}

}  // namespace ingot::commands

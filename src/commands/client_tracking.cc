// The modes of client side caching.
#include "src/commands/client_tracking.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/contract/client_registry.h"
#include "src/contract/errors.h"
#include "src/contract/tracking.h"

namespace ingot::commands {

namespace tracks = contract::tracks;
using contract::Client;

namespace {

constexpr std::string_view kOtherModeFirst =
    "ERR You can't switch {} before disabling tracking for this client, and then re-enabling it "
    "with a different mode.";

bool overlap(std::string_view a, std::string_view b) {
  return a.starts_with(b) || b.starts_with(a);
}

void read_redirect(SessionContext& context, ArgReader& reader, uint64_t* redirect) {
  if (*redirect != 0) {
    return reader.fail("ERR A client can only redirect to a single other client");
  }
  *redirect = static_cast<uint64_t>(reader.integer());
  if (reader.failed()) return;
  if (!context.clients.find(*redirect)) {
    reader.fail("ERR The client ID you want redirect to does not exist");
  }
}

// Two that overlap: in their order they are neighbours. Nothing: none do.
std::optional<std::pair<std::string_view, std::string_view>> overlapping(
    std::span<const std::string> existing, std::span<const std::string_view> added) {
  std::vector<std::string_view> all(existing.begin(), existing.end());
  all.insert(all.end(), added.begin(), added.end());
  std::ranges::sort(all);
  const auto found = std::ranges::adjacent_find(all, overlap);
  if (found == all.end()) return std::nullopt;
  return std::pair(*found, *std::next(found));
}

std::string overlap_error(std::string_view a, std::string_view b, std::string_view what) {
  return fmt::format(
      "ERR Prefix '{}' overlaps with {} prefix '{}'. Prefixes for a single client must not "
      "overlap.",
      a, what, b);
}

// Why the client cannot track in this way; empty: it can.
std::string conflict(SessionContext& context, const contract::Tracking::Options& options) {
  const uint32_t before = context.client.tracking;
  const uint32_t mode = options.mode;
  const auto both = [](uint32_t bits) {
    return (bits & tracks::kOptIn) != 0 && (bits & tracks::kOptOut) != 0;
  };
  if ((mode & tracks::kBroadcast) == 0 && !options.prefixes.empty()) {
    return "ERR PREFIX option requires BCAST mode to be enabled";
  }
  if ((before & tracks::kOn) != 0 && ((before ^ mode) & tracks::kBroadcast) != 0) {
    return fmt::format(kOtherModeFirst, "BCAST mode on/off");
  }
  if ((mode & tracks::kBroadcast) != 0 && (mode & (tracks::kOptIn | tracks::kOptOut)) != 0) {
    return "ERR OPTIN and OPTOUT are not compatible with BCAST";
  }
  if (both(mode)) return "ERR You can't specify both OPTIN mode and OPTOUT mode";
  if (both(mode | before)) return fmt::format(kOtherModeFirst, "OPTIN/OPTOUT mode");
  const auto existing = context.tracking.prefixes_of(context.client);
  const auto some = overlapping(existing, options.prefixes);
  if (!some) return {};
  // Which ones Redis names takes comparing each with each.
  constexpr size_t kComparedMax = 1000;
  if (existing.size() + options.prefixes.size() > kComparedMax) {
    return overlap_error(some->first, some->second, "another provided");
  }
  for (size_t i = 0; i < options.prefixes.size(); ++i) {
    const std::string_view prefix = options.prefixes[i];
    for (const std::string& other : existing) {
      if (overlap(prefix, other)) return overlap_error(prefix, other, "an existing");
    }
    for (const std::string_view other : std::span(options.prefixes).subspan(i + 1)) {
      if (overlap(prefix, other)) return overlap_error(prefix, other, "another provided");
    }
  }
  return {};
}

}  // namespace

void client_tracking(SessionContext& context, Args args) {
  contract::Tracking::Options options;
  ArgReader reader(args, 3);
  while (reader.more()) {
    if (reader.word("redirect", 1)) {
      read_redirect(context, reader, &options.redirect);
    } else if (reader.word("prefix", 1)) {
      options.prefixes.push_back(reader.text());
    } else if (const auto bit = reader.choice<uint32_t>({{"bcast", tracks::kBroadcast},
                                                         {"optin", tracks::kOptIn},
                                                         {"optout", tracks::kOptOut},
                                                         {"noloop", tracks::kNoLoop}})) {
      options.mode |= *bit;
    } else {
      reader.fail(contract::error::kSyntax);
    }
  }
  if (reader.failed()) return context.reply.error(reader.error());
  const auto on = ArgReader(args, 2).choice<bool>({{"on", true}, {"off", false}});
  if (!on) return context.reply.error(contract::error::kSyntax);
  if (!*on) {
    context.tracking.disable(context.client);
    return context.reply.ok();
  }
  if (const std::string why = conflict(context, options); !why.empty()) {
    return context.reply.error(why);
  }
  if (!context.tracking.enable(context.client, options)) {
    return context.reply.error(contract::kOutOfMemory);
  }
  context.reply.ok();
}

void client_caching(SessionContext& context, Args args) {
  Client& client = context.client;
  const uint32_t mode = client.tracking;
  if (mode == 0) {
    return context.reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  }
  const auto yes = ArgReader(args, 2).choice<bool>({{"yes", true}, {"no", false}});
  if (!yes) return context.reply.error(contract::error::kSyntax);
  if (*yes && (mode & tracks::kOptIn) == 0) {
    return context.reply.error(
        "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  }
  if (!*yes && (mode & tracks::kOptOut) == 0) {
    return context.reply.error(
        "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  }
  client.tracking.fetch_or(tracks::kCaching);
  context.reply.ok();
}

void client_getredir(SessionContext& context, Args) {
  context.reply.integer(context.client.redirect());
}

void client_trackinginfo(SessionContext& context, Args) {
  const uint32_t mode = context.client.tracking;
  std::vector<std::string_view> flags = {mode != 0 ? "on" : "off"};
  const auto add = [&](uint32_t bit, std::string_view name) {
    if ((mode & bit) != 0) flags.push_back(name);
    return (mode & bit) != 0;
  };
  add(tracks::kBroadcast, "bcast");
  if (add(tracks::kOptIn, "optin")) add(tracks::kCaching, "caching-yes");
  if (add(tracks::kOptOut, "optout")) add(tracks::kCaching, "caching-no");
  add(tracks::kNoLoop, "noloop");
  add(tracks::kBrokenRedirect, "broken_redirect");

  const auto prefixes = context.tracking.prefixes_of(context.client);
  context.reply.map(3);
  context.reply.bulk("flags");
  context.reply.set(flags.size());
  for (const std::string_view flag : flags) context.reply.bulk(flag);
  context.reply.bulk("redirect");
  context.reply.integer(context.client.redirect());
  context.reply.bulk("prefixes");
  context.reply.array(prefixes.size());
  for (const std::string& prefix : prefixes) context.reply.bulk(prefix);
}

}  // namespace ingot::commands

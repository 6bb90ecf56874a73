// Members one by one in the writer, or all at once beside it.
#include "src/commands/zset_addition.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <utility>

#include "src/commands/large_addition.h"
#include "src/types/sorted_set_builder.h"

namespace ingot::commands {

Added added(const AddOptions& options, std::optional<double> old, double* score) {
  if (!old) return options.xx ? Added::kNothing : Added::kNew;
  if (options.nx) return Added::kNothing;
  if (options.increment) {
    *score += *old;
    if (std::isnan(*score)) return Added::kNotANumber;
  }
  if ((options.lt && *score >= *old) || (options.gt && *score <= *old)) return Added::kNothing;
  return *score == *old ? Added::kSame : Added::kUpdated;
}

namespace {

struct Counts {
  uint64_t added = 0;
  uint64_t updated = 0;

  void count(Added what) {
    added += what == Added::kNew ? 1 : 0;
    updated += what == Added::kUpdated ? 1 : 0;
  }
  data::Change change(const AddOptions& options) const {
    const uint64_t answer = options.changed ? added + updated : added;
    return {.changes = added + updated, .answer = static_cast<int64_t>(answer)};
  }
};

data::Change add_singly(types::SortedSetWriter& set, MemberWords members,
                        const std::vector<double>& scores, const AddOptions& options) {
  Counts counts;
  for (size_t i = 0; i < scores.size(); ++i) {
    double score = scores[i];
    const std::optional<double> old = set.score(members[i]);
    const Added what = added(options, old, &score);
    if (what == Added::kNew || what == Added::kUpdated) set.put(members[i], score, old);
    counts.count(what);
  }
  if (counts.added + counts.updated != 0) set.finish();
  return counts.change(options);
}

// A member of those that are added, which may come several times: Redis takes them in turn.
struct Merged {
  std::optional<double> score;
  bool is_new = false;  // it was not there before all of them
  bool changes = false;
};

// The sorted set with the members, as if they had been added singly.
types::BuiltValue add_together(storage::Reader& data, const types::Record& before,
                               MemberWords members, const std::vector<double>& scores,
                               const AddOptions& options, const types::SortedSetLimits& limits,
                               const types::PutElement& put) {
  types::SortedSetReader reader(data, before);
  bool limit_passed = before.limit_passed();
  uint64_t size = reader.size();
  boost::unordered_flat_map<std::string_view, Merged> merged;
  Counts counts;
  for (size_t i = 0; i < scores.size() && !data.failed(); ++i) {
    const auto [at, is_first] = merged.try_emplace(members[i]);
    Merged& member = at->second;
    if (is_first) {
      member.score = reader.score(members[i]);
      member.is_new = !member.score;
    }
    double score = scores[i];
    const Added what = added(options, member.score, &score);
    counts.count(what);
    if (what != Added::kNew && what != Added::kUpdated) continue;
    if (what == Added::kNew) {
      ++size;
      if (!types::stays_packed(limits, size, members[i].size())) limit_passed = true;
    }
    member.score = !limit_passed && score == 0 ? 0 : score;  // the packed form has no -0
    member.changes = true;
  }
  std::vector<types::ScoreUpdate> updates;
  for (const auto& [name, member] : merged) {
    if (!member.changes) continue;
    updates.push_back({.score = *member.score, .member = name, .is_new = member.is_new});
  }
  types::BuiltValue value;
  if (!updates.empty()) {
    value = types::updated_sorted_set(data, before, limits, limit_passed, std::move(updates), put);
  }
  const data::Change change = counts.change(options);
  value.changes = change.changes;
  value.answer = change.answer;
  return value;
}

}  // namespace

std::optional<data::Change> add_members(contract::WriteContext& ctx, std::string_view key,
                                        OpenedSortedSet& set, MemberWords members,
                                        std::vector<double> scores, const AddOptions& options) {
  const auto tell = [&](const data::Change& change) {
    if (change.changes != 0) ctx.keys.notify(types::notify::kZset, "zadd", ctx.db, key);
    return change;
  };
  if (!is_large_addition(ctx, set.record(), scores.size(), contract::kScoredByWriter)) {
    return tell(add_singly(*set, members, scores, options));
  }
  const auto value = data::build_value(
      ctx, {.sources = contract::Args(&key, 1), .is_large = true},
      [db = ctx.db, key, members, scores = std::move(scores), options, limits = zset_limits(ctx)](
          types::KeyReader& keys, const types::PutElement& put) {
        types::Record before;
        const auto found = types::find_as(keys, db, key, storage::ValueType::kSortedSet, &before);
        // The key has changed, and the command runs again.
        if (found == types::Found::kWrongType) return types::BuiltValue{};
        if (found == types::Found::kAbsent) before = {};
        return add_together(keys.data(), before, members, scores, options, limits, put);
      });
  if (!value) return std::nullopt;
  return tell(store_added(ctx, key, set.record(), *value));
}

}  // namespace ingot::commands

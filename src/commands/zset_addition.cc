// Members one by one in the writer, or all at once beside it.
#include "src/commands/zset_addition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

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

data::Change add_singly(types::SortedSetWriter& set, Words members,
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

// What becomes of members that are added together. Each may come several times; Redis takes them in
// turn. There may be millions, so this takes few bytes for each.
class Merge {
 public:
  Merge(Words members, const std::vector<double>& scores)
      : members_(members), scores_(scores), states_(scores.size()), first_places_(members) {}

  // With the set that is there.
  void run(types::SortedSetReader& set, storage::Reader& data, bool limit_passed,
           const AddOptions& options, const types::SortedSetLimits& limits) {
    limit_passed_ = limit_passed;
    uint64_t size = set.size();
    for (uint32_t i = 0; i < scores_.size() && !data.failed(); ++i) {
      State& state = state_of(i, set);
      double score = scores_[i];
      const Added what =
          added(options, state.is_there ? std::optional(state.score) : std::nullopt, &score);
      counts_.count(what);
      if (what != Added::kNew && what != Added::kUpdated) continue;
      if (what == Added::kNew) {
        ++size;
        if (!types::stays_packed(limits, size, members_[i].size())) limit_passed_ = true;
      }
      // The packed form has no -0.
      state = {
          .score = !limit_passed_ && score == 0 ? 0 : score, .is_there = true, .changes = true};
    }
  }

  const Counts& counts() const { return counts_; }
  bool limit_passed() const { return limit_passed_; }

  types::ScoreUpdates updates() {
    first_places_.for_each([this](uint32_t place) {
      if (states_[place].changes) changed_.push_back(place);
    });
    std::ranges::sort(changed_, {}, [this](uint32_t place) { return at(place); });
    return {.count = changed_.size(),
            .at = [this](size_t index) { return at(changed_[index]); },
            .has =
                [this](std::string_view member) {
                  const auto found = first_places_.find(member);
                  return found && states_[*found].changes;
                }};
  }

 private:
  struct State {
    double score = 0;
    bool is_there = false;
    bool changes = false;
  };
  State& state_of(uint32_t place, types::SortedSetReader& set) {
    const auto [first, is_first] = first_places_.insert(place);
    State& state = states_[first];
    if (is_first) {
      const std::optional<double> score = set.score(members_[place]);
      state = {.score = score.value_or(0), .is_there = score.has_value()};
    }
    return state;
  }
  std::pair<double, std::string_view> at(uint32_t place) const {
    return {states_[place].score, members_[place]};
  }

  const Words members_;
  const std::vector<double>& scores_;
  std::vector<State> states_;  // of the first places; the others are unused
  WordPlaces first_places_;
  std::vector<uint32_t> changed_;
  Counts counts_;
  bool limit_passed_ = false;
};

// The sorted set with the members, as if they had been added singly.
types::BuiltValue add_together(storage::Reader& data, const types::Record& before, Words members,
                               const std::vector<double>& scores, const AddOptions& options,
                               const types::SortedSetLimits& limits, const types::PutElement& put) {
  types::SortedSetReader reader(data, before);
  Merge merge(members, scores);
  merge.run(reader, data, before.limit_passed(), options, limits);
  const data::Change change = merge.counts().change(options);
  types::BuiltValue value;
  if (change.changes != 0) {
    value =
        types::updated_sorted_set(data, before, limits, merge.limit_passed(), merge.updates(), put);
  }
  value.changes = change.changes;
  value.answer = change.answer;
  return value;
}

}  // namespace

std::optional<data::Change> add_members(contract::WriteContext& ctx, std::string_view key,
                                        OpenedSortedSet& set, Words members,
                                        std::vector<double> scores, const AddOptions& options) {
  const auto tell = [&](const data::Change& change) {
    if (change.changes != 0) ctx.keys.notify(types::notify::kZset, "zadd", ctx.db, key);
    return change;
  };
  // With each of them a leaf of the order is written, and large ones are held some times over.
  size_t bytes = 0;
  for (size_t i = 0; i < members.size(); ++i) bytes += members[i].size();
  const Adding way = way_of_adding(ctx, set.record(), scores.size(),
                                   {.most = contract::kScoredByWriter,
                                    .written = 16,
                                    .is_large = bytes > contract::kMemberBytesByWriter});
  if (way == Adding::kInWriter) return tell(add_singly(*set, members, scores, options));
  const auto kept = std::make_shared<const std::vector<double>>(std::move(scores));
  const types::SortedSetLimits limits = zset_limits(ctx);
  if (way == Adding::kBeside) {
    const auto change = data::change_beside(
        ctx, key, set.record(),
        changes_by<types::SortedSetWriter>(
            ctx, key, storage::ValueType::kSortedSet, limits,
            [members, kept, options](types::SortedSetWriter& writer, const auto&) {
              return add_singly(writer, members, *kept, options);
            },
            [](types::KeyReader&, const types::Record&) { return true; }));
    return change ? std::optional(tell(*change)) : std::nullopt;
  }
  const auto value = data::build_value(
      ctx, {.sources = contract::Args(&key, 1), .is_large = true},
      [db = ctx.db, key, members, options, limits, kept](types::KeyReader& keys,
                                                         const types::PutElement& put) {
        types::Record before;
        const auto found = types::find_as(keys, db, key, storage::ValueType::kSortedSet, &before);
        // The key has changed, and the command runs again.
        if (found == types::Found::kWrongType) return types::BuiltValue{};
        if (found == types::Found::kAbsent) before = {};
        return add_together(keys.data(), before, members, *kept, options, limits, put);
      });
  if (!value) return std::nullopt;
  return tell(store_added(ctx, key, set.record(), *value));
}

}  // namespace ingot::commands

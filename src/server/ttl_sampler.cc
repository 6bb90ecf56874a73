// Looking at a stretch of keys behind a random one.
#include "src/server/ttl_sampler.h"

#include <random>

#include "src/data/reader_pool.h"
#include "src/data/store.h"
#include "src/types/key_walk.h"

namespace ingot::server {

namespace {

constexpr std::chrono::seconds kInterval{5};
constexpr int kKeys = 100;
constexpr int kStretchesMax = 8;  // keys that expire may all stand in other places
// What a sample counts for beside those before it.
constexpr double kShare = 0.2;

// Of the keys of one stretch; 0: none of them expires.
double sample_ms(storage::Reader& data, storage::KeyspaceId keyspace, int64_t now_ms) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  types::KeyWalk walk(data, keyspace, "");
  types::seek_random(walk, random);
  double sum_ms = 0;
  int count = 0;
  for (int i = 0; i < kKeys && walk.valid(); ++i, walk.next()) {
    storage::Metadata metadata;
    if (!walk.read(&metadata) || metadata.expire_ms <= now_ms) continue;
    sum_ms += static_cast<double>(metadata.expire_ms - now_ms);
    ++count;
  }
  return count == 0 ? 0 : sum_ms / count;
}

}  // namespace

int64_t TtlSampler::average_ms(storage::KeyspaceId keyspace) const {
  const std::lock_guard lock(mutex_);
  const auto found = averages_ms_.find(keyspace);
  return found == averages_ms_.end() ? 0 : static_cast<int64_t>(found->second);
}

void TtlSampler::look_again() {
  {
    const std::lock_guard lock(mutex_);
    const bool is_early =
        looked_at_ != Clock::time_point() && Clock::now() - looked_at_ < kInterval;
    if (is_early || running_.exchange(true)) return;
  }
  services_.readers.submit([self = shared_from_this()] { self->run(); }, data::Work::kLong);
}

void TtlSampler::run() {
  const auto view = services_.store.view();
  storage::EngineReader data(services_.store.engine(), view->snapshot(), storage::Tier::kDisk,
                             storage::CacheUse::kPassBy);
  types::KeyReader keys(data, view->databases(), view->created_ms(), nullptr);
  std::map<storage::KeyspaceId, double> averages_ms;
  for (size_t db = 0; db < view->databases().size(); ++db) {
    if (keys.counts(static_cast<int>(db)).expires == 0) continue;
    const storage::KeyspaceId keyspace = view->databases()[db];
    const double before = static_cast<double>(average_ms(keyspace));
    double now = 0;
    for (int i = 0; i < kStretchesMax && now == 0; ++i) {
      now = sample_ms(data, keyspace, view->created_ms());
    }
    if (data.failed()) break;
    averages_ms[keyspace] =
        before == 0 || now == 0 ? before + now : before + (now - before) * kShare;
  }
  const std::lock_guard lock(mutex_);
  averages_ms_ = std::move(averages_ms);
  looked_at_ = Clock::now();
  running_ = false;
}

}  // namespace ingot::server

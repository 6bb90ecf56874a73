// Four heads in an instruction with AVX2, one by one elsewhere.
#include "storage/rocksdb/node_heads.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define INGOT_HAS_AVX2_HEADS 1
#include <immintrin.h>
#else
#define INGOT_HAS_AVX2_HEADS 0
#endif

namespace ingot::storage {
namespace {

HeadCounts count_singly(const NodeHeads& heads, int count, uint64_t head) {
  HeadCounts counts;
  for (int place = 0; place < count; ++place) {
    const uint64_t other = heads[static_cast<size_t>(place)].load(std::memory_order_acquire);
    counts.below += static_cast<int>(other < head);
    counts.equal += static_cast<int>(other == head);
  }
  return counts;
}

#if INGOT_HAS_AVX2_HEADS

// Each aligned number of a vector is read whole, and all loads are in order on this processor: the
// fences are for the compiler. (A sanitizer for threads takes it for a race.)
__attribute__((target("avx2,popcnt"))) HeadCounts count_with_avx2(const NodeHeads& heads, int count,
                                                                  uint64_t head) {
  constexpr int kLanes = 4;
  const auto* numbers = reinterpret_cast<const char*>(heads.data());
  // Only signed numbers can be compared.
  const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
  const __m256i sought = _mm256_set1_epi64x(static_cast<int64_t>(head));
  const __m256i sought_signed = _mm256_xor_si256(sought, sign);
  unsigned below = 0;
  unsigned equal = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (int place = 0; place < kNodePlaces; place += kLanes) {
    const __m256i here = _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(numbers + place * static_cast<int>(sizeof(head))));
    const __m256i lower = _mm256_cmpgt_epi64(sought_signed, _mm256_xor_si256(here, sign));
    const __m256i same = _mm256_cmpeq_epi64(sought, here);
    below |= static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(lower))) << place;
    equal |= static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(same))) << place;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const unsigned counted = (1U << count) - 1;
  return {.below = __builtin_popcount(below & counted),
          .equal = __builtin_popcount(equal & counted)};
}

const bool has_avx2 = __builtin_cpu_supports("avx2") > 0;

#endif

}  // namespace

HeadCounts count_heads(const NodeHeads& heads, int count, uint64_t head) {
#if INGOT_HAS_AVX2_HEADS
  if (has_avx2) return count_with_avx2(heads, count, head);
#endif
  return count_singly(heads, count, head);
}

}  // namespace ingot::storage

#include "hosts/lane_bytes.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstring>

#include "packets/byte_order.hpp"

namespace weft {
namespace {

void swap_portable(const uint8_t* from, uint8_t* to, size_t lane_count) {
  for (size_t lane = 0; lane < lane_count; ++lane) {
    const auto value = load_big_endian<uint32_t>(from + 4 * lane);
    std::memcpy(to + 4 * lane, &value, sizeof value);
  }
}

#if defined(__x86_64__)

// Eight lanes at a time. A message has hundreds, and one by one they would be half of the work of a host.
__attribute__((target("avx2"))) void swap_with_avx2(const uint8_t* from, uint8_t* to, size_t lane_count) {
  constexpr size_t kLanes = sizeof(__m256i) / 4;
  const __m256i order = _mm256_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,  //
                                        12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  const size_t whole = lane_count / kLanes * kLanes;
  for (size_t lane = 0; lane < whole; lane += kLanes) {
    const __m256i lanes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 4 * lane));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 4 * lane), _mm256_shuffle_epi8(lanes, order));
  }
  swap_portable(from + 4 * whole, to + 4 * whole, lane_count - whole);
}

#endif

}  // namespace

void swap_lane_bytes(const uint8_t* from, uint8_t* to, size_t lane_count) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) {
    swap_with_avx2(from, to, lane_count);
    return;
  }
#endif
  swap_portable(from, to, lane_count);
}

}  // namespace weft

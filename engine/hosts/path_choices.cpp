#include "hosts/path_choices.hpp"

#include <stdexcept>

namespace weft {
namespace {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a stream of numbers that needs no state but its index.
uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t bits = seed + index * 0x9E3779B97F4A7C15ull;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  return bits ^ (bits >> 31);
}

constexpr uint64_t kPathStream = 1ull << 63;

}  // namespace

Spray::Spray(uint64_t seed, uint32_t path_count) : seed_(seed), path_count_(path_count) {
  if (path_count < 1 || path_count > kEntropyMask + 1u) {
    throw std::invalid_argument("spray over " + std::to_string(path_count) + " paths (valid: 1 to 16384)");
  }
}

uint16_t Spray::entropy(TimePs /*now*/, uint64_t /*sequence*/, bool /*retransmission*/) {
  const uint64_t path = mixed(seed_, ++sent_) % path_count_;
  return static_cast<uint16_t>(mixed(seed_, kPathStream + path) & kEntropyMask);
}

Flowlet::Flowlet(uint64_t seed, TimePs gap_ps) : seed_(seed), gap_ps_(gap_ps) {
  if (gap_ps <= 0) {
    throw std::invalid_argument("flowlets with a gap of " + std::to_string(gap_ps) +
                                " ps (valid: 1 or more)");
  }
}

uint16_t Flowlet::entropy(TimePs now, uint64_t /*sequence*/, bool /*retransmission*/) {
  if (now - last_sent_ps_ > gap_ps_) ++flowlet_;
  last_sent_ps_ = now;
  return static_cast<uint16_t>(mixed(seed_, flowlet_) & kEntropyMask);
}

}  // namespace weft

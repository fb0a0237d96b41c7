// Packet sequence numbers: 24 bits on the wire, 64-bit sequences inside a queue pair, so that only the two
// conversions know about wrapping (InfiniBand specification, section 9.7.2).
#pragma once

#include <cstdint>

namespace weft {

constexpr uint32_t kPsnMask = 0xFFFFFF;
// Farthest apart that two sequence numbers in use may be for their order to be known.
constexpr uint64_t kMaxOutstandingPackets = 1u << 23;

// a - b for two 24-bit sequence numbers, in [-2^23, 2^23).
constexpr int32_t psn_difference(uint32_t a, uint32_t b) {
  const uint32_t difference = (a - b) & kPsnMask;
  return difference >= (1u << 23) ? static_cast<int32_t>(difference) - (1 << 24)
                                  : static_cast<int32_t>(difference);
}

// Maps between the wire and a sequence that starts at 0 with `initial_psn`.
class PsnMap {
 public:
  explicit PsnMap(uint32_t initial_psn) : initial_psn_(initial_psn) {}
  uint32_t psn(uint64_t sequence) const { return static_cast<uint32_t>(initial_psn_ + sequence) & kPsnMask; }
  // The sequence nearest to `near`; negative for a PSN from before the start.
  int64_t sequence(uint32_t psn_value, uint64_t near) const {
    return static_cast<int64_t>(near) + psn_difference(psn_value, psn(near));
  }

 private:
  uint32_t initial_psn_;
};

}  // namespace weft

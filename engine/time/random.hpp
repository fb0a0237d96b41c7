// Seeded random streams. A stream depends on the seed and its name only, never on who drew before.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

// xoshiro256++ (Blackman, Vigna: "Scrambled linear pseudorandom number generators", 2021), seeded by
// SplitMix64.
class Rng {
 public:
  Rng(uint64_t seed, std::string_view stream_name);

  uint64_t next_u64() {
    const uint64_t result = rotate_left(state_[0] + state_[3], 23) + state_[0];
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate_left(state_[3], 45);
    return result;
  }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }
  // Uniform in [0, bound), bound > 0; without bias (Lemire, "Fast random integer generation in an interval",
  // 2019).
  uint64_t below(uint64_t bound);
  bool bernoulli(double probability) { return uniform() < probability; }

 private:
  static uint64_t rotate_left(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<uint64_t, 4> state_;
};

}  // namespace weft

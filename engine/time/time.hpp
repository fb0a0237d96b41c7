// Emulated time and what follows from it: int64 picoseconds, and how long bytes take at a bit rate.
#pragma once

#include <cstdint>
#include <limits>

namespace weft {

using TimePs = int64_t;

constexpr TimePs kNever = std::numeric_limits<TimePs>::max();
constexpr TimePs kPsPerNs = 1'000;
constexpr TimePs kPsPerUs = 1'000'000;
constexpr TimePs kPsPerSecond = 1'000'000'000'000;

// A bit rate that answers how long a frame occupies the link. Rate 0 means unpaced: no time at all.
// Only the frame's own bytes count (no preamble, FCS or gap), as in ns-3's and htsim's link models.
class BitRate {
 public:
  explicit BitRate(uint64_t bits_per_second = 0)
      : bits_per_second_(bits_per_second),
        ps_per_byte_(bits_per_second != 0 && kPsPerByteAtOneBps % bits_per_second == 0
                         ? kPsPerByteAtOneBps / bits_per_second
                         : 0) {}

  uint64_t bits_per_second() const { return bits_per_second_; }

  // Picoseconds, rounded to the nearest; exact at every rate that divides 8·10^12 (1, 10, 25, 40, 100, 400
  // Gb/s …).
  TimePs serialisation_ps(uint64_t bytes) const {
    if (ps_per_byte_ != 0) return static_cast<TimePs>(bytes * ps_per_byte_);
    return serialisation_ps(bytes, bits_per_second_);
  }
  // The same for a rate that is asked once.
  static TimePs serialisation_ps(uint64_t bytes, uint64_t bits_per_second) {
    if (bits_per_second == 0) return 0;
    const uint64_t half = bits_per_second / 2;
    // Every frame, and a division of 64 bits costs far less than one of 128.
    if (bytes < kFewBytes && half < kPsPerByteAtOneBps) [[likely]]
      return static_cast<TimePs>((bytes * kPsPerByteAtOneBps + half) / bits_per_second);
    const auto scaled = static_cast<unsigned __int128>(bytes) * kPsPerByteAtOneBps + half;
    return static_cast<TimePs>(scaled / bits_per_second);
  }

 private:
  static constexpr uint64_t kPsPerByteAtOneBps = 8ull * kPsPerSecond;
  static constexpr uint64_t kFewBytes = 1ull << 20;  // times 8·10^12 that is below 2^63
  uint64_t bits_per_second_;
  uint64_t ps_per_byte_;  // 0 when not a whole number
};

}  // namespace weft

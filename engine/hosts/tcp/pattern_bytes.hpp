// The contents of streams that nobody has written: a byte for each place in the stream, so that a receiver
// can tell whether each has arrived at its own.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace weft {

class PatternBytes {
 public:
  static constexpr uint32_t kMostAtOnce = 65536;

  // `length` of at most kMostAtOnce.
  static std::span<const uint8_t> at(uint64_t offset, uint32_t length) {
    return std::span(table()).subspan(static_cast<size_t>(offset % kPeriod), length);
  }
  static bool matches(uint64_t offset, std::span<const uint8_t> bytes) {
    return std::memcmp(at(offset, static_cast<uint32_t>(bytes.size())).data(), bytes.data(), bytes.size()) ==
           0;
  }

 private:
  static constexpr uint64_t kPeriod = 65521;  // a prime, so that segments of no size repeat it

  static const std::vector<uint8_t>& table() {
    static const std::vector<uint8_t> bytes = [] {
      std::vector<uint8_t> made(kPeriod + kMostAtOnce);
      uint32_t state = 1;
      for (size_t each = 0; each < kPeriod; ++each) {
        state = state * 1664525u + 1013904223u;
        made[each] = static_cast<uint8_t>(state >> 24);
      }
      for (size_t each = kPeriod; each < made.size(); ++each) made[each] = made[each - kPeriod];
      return made;
    }();
    return bytes;
  }
};

}  // namespace weft

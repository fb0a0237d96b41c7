// End-to-end credits: how many receives a responder has posted, as an acknowledgement's five bits say it
// (InfiniBand specification, section 9.7.7). A requester holds SENDs back for which there is none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "packets/roce_formats.hpp"

namespace weft {

// Codes count exactly to 4 and then by steps of a half and a third, like the timers of RNR NAKs.
constexpr std::array<uint32_t, roce::kSyndromeAckNoCredits> kCreditsOfCode = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

// The largest code that promises no more.
constexpr uint8_t credit_code(uint64_t receives) {
  const auto above = std::upper_bound(kCreditsOfCode.begin(), kCreditsOfCode.end(), receives);
  return static_cast<uint8_t>(above - kCreditsOfCode.begin() - 1);
}

}  // namespace weft

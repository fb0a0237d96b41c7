// What the rate codes of HPCC's INT stand for (docs/spec/frames.md).
#pragma once

#include <array>
#include <cstdint>

namespace weft {

// Bits per second by rate code. 0 is unknown; a fabric may give codes above 10, and those of rates that it
// does not have, to rates of its own (topologies/int_rates.py).
using IntRates = std::array<uint64_t, 16>;
constexpr IntRates kStandardIntRatesBps = {0,
                                           1'000'000'000,
                                           10'000'000'000,
                                           25'000'000'000,
                                           40'000'000'000,
                                           50'000'000'000,
                                           100'000'000'000,
                                           200'000'000'000,
                                           400'000'000'000,
                                           800'000'000'000,
                                           1'600'000'000'000};

}  // namespace weft

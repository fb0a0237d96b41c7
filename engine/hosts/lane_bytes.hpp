// Lanes of an aggregation message between the order of a packet's bytes and the host's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// Big-endian lanes of four bytes to host order and back; the same exchange both ways. The two ranges are the
// same or do not overlap.
void swap_lane_bytes(const uint8_t* from, uint8_t* to, size_t lane_count);

}  // namespace weft

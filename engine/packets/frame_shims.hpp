// Where a frame's own headers go on behind Weft's shims (docs/spec/frames.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft {

// Without its shims a frame is its two MAC addresses, the two bytes at `ethertype_at`, and all from `rest_at`
// on.
struct BehindShims {
  size_t ethertype_at = 0;
  size_t rest_at = 0;
  uint16_t ethertype = 0;
};

// Nothing for a frame that ends within its Ethernet header or a shim.
std::optional<BehindShims> behind_shims(std::span<const uint8_t> frame);

}  // namespace weft

// Which DSCP a frame carries, behind Weft's shims (docs/spec/frames.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace weft {

constexpr int kDscpCount = 64;

// Nothing for a frame without an IP header, or one that is cut short before its DSCP.
std::optional<uint8_t> dscp_of(std::span<const uint8_t> frame);

}  // namespace weft

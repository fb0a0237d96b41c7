// Which DSCP a frame carries, behind Weft's shims (docs/spec/frames.md), and what a switch that trims it
// writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft {

constexpr int kDscpCount = 64;

// Nothing for a frame without an IP header, or one that is cut short before its DSCP.
std::optional<uint8_t> dscp_of(std::span<const uint8_t> frame);

// Gives a frame of frame_bytes, of which the first are given, this DSCP, and its IP header the length of what
// is there if it says more; IPv4's checksum follows. SAI asks for all three
// (sai_buffer_profile_packet_admission_fail_action_t); ECN's bits and the headers behind IP's stay as they
// are.
void mark_trimmed(std::span<uint8_t> frame, size_t frame_bytes, uint8_t dscp);

}  // namespace weft

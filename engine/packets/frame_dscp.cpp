#include "packets/frame_dscp.hpp"

#include "packets/byte_order.hpp"
#include "packets/frame_shims.hpp"
#include "packets/roce_formats.hpp"

namespace weft {

std::optional<uint8_t> dscp_of(std::span<const uint8_t> frame) {
  const std::optional<BehindShims> place = behind_shims(frame);
  if (!place || frame.size() - place->rest_at < 2) return std::nullopt;
  // The traffic class of IPv6 begins in the middle of the first byte.
  const auto first = load_big_endian<uint16_t>(frame.data() + place->rest_at);
  if (place->ethertype == roce::kEtherTypeIpv4 && first >> 12 == 4) return (first & 0xFF) >> 2;
  if (place->ethertype == roce::kEtherTypeIpv6 && first >> 12 == 6) return (first >> 4 & 0xFF) >> 2;
  return std::nullopt;
}

}  // namespace weft

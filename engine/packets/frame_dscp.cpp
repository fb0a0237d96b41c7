#include "packets/frame_dscp.hpp"

#include "packets/byte_order.hpp"
#include "packets/roce_formats.hpp"

namespace weft {

namespace {

constexpr size_t kEtherTypeBytes = 2;
constexpr size_t kNextOfIntermediateShimAt = 4;
constexpr size_t kNextOfIntShimAt = 2;

// A reader that stands at a header, whose type it knows.
struct HeaderReader {
  std::span<const uint8_t> left;
  uint16_t ethertype = 0;

  // Goes on behind a header of `size` bytes which says at `next_at` what follows it.
  bool pass(size_t size, size_t next_at) {
    if (left.size() < size) return false;
    ethertype = load_big_endian<uint16_t>(left.data() + next_at);
    left = left.subspan(size);
    return true;
  }
};

}  // namespace

std::optional<uint8_t> dscp_of(std::span<const uint8_t> frame) {
  HeaderReader reader{frame};
  if (!reader.pass(roce::kEthernetBytes, roce::kEthernetBytes - kEtherTypeBytes)) return std::nullopt;
  if (reader.ethertype == roce::kEtherTypeIntermediateShim &&
      !reader.pass(roce::kIntermediateShimBytes, kNextOfIntermediateShimAt))
    return std::nullopt;
  if (reader.ethertype == roce::kEtherTypeIntShim && !reader.pass(roce::kIntShimBytes, kNextOfIntShimAt))
    return std::nullopt;
  if (reader.left.size() < 2) return std::nullopt;
  // The traffic class of IPv6 begins in the middle of the first byte.
  const auto first = load_big_endian<uint16_t>(reader.left.data());
  if (reader.ethertype == roce::kEtherTypeIpv4 && first >> 12 == 4) return (first & 0xFF) >> 2;
  if (reader.ethertype == roce::kEtherTypeIpv6 && first >> 12 == 6) return (first >> 4 & 0xFF) >> 2;
  return std::nullopt;
}

}  // namespace weft

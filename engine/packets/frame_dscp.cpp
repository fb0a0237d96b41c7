#include "packets/frame_dscp.hpp"

#include "packets/byte_order.hpp"
#include "packets/frame_shims.hpp"
#include "packets/internet_checksum.hpp"
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

namespace {

// RFC 1624, equation 3: a checksum that was wrong stays so.
void store_with_checksum(uint8_t* word, uint16_t value, uint8_t* checksum) {
  const uint64_t sum = static_cast<uint16_t>(~load_big_endian<uint16_t>(checksum)) +
                       static_cast<uint64_t>(static_cast<uint16_t>(~load_big_endian<uint16_t>(word))) + value;
  store_big_endian<uint16_t>(word, value);
  store_big_endian<uint16_t>(checksum, fold_internet_sum(sum));
}

}  // namespace

void mark_trimmed(std::span<uint8_t> frame, size_t frame_bytes, uint8_t dscp) {
  constexpr uint16_t kEcnBits = 3;
  const std::optional<BehindShims> place = behind_shims(frame);
  if (!place) return;
  uint8_t* const ip = frame.data() + place->rest_at;
  const size_t readable_bytes = frame.size() - place->rest_at;
  const size_t ip_bytes = frame_bytes - place->rest_at;
  if (place->ethertype == roce::kEtherTypeIpv4 && readable_bytes >= roce::kIpv4Bytes && ip[0] >> 4 == 4) {
    const auto first = load_big_endian<uint16_t>(ip);
    const auto marked = static_cast<uint16_t>((first & (0xFF00 | kEcnBits)) | dscp << 2);
    store_with_checksum(ip, marked, ip + 10);
    const auto length = load_big_endian<uint16_t>(ip + 2);
    if (length > ip_bytes) store_with_checksum(ip + 2, static_cast<uint16_t>(ip_bytes), ip + 10);
  } else if (place->ethertype == roce::kEtherTypeIpv6 && readable_bytes >= roce::kIpv6Bytes &&
             ip[0] >> 4 == 6) {
    const auto first = load_big_endian<uint16_t>(ip);
    store_big_endian<uint16_t>(ip, static_cast<uint16_t>((first & (0xF00F | kEcnBits << 4)) | dscp << 6));
    const size_t payload_bytes = ip_bytes - roce::kIpv6Bytes;
    if (load_big_endian<uint16_t>(ip + 4) > payload_bytes)
      store_big_endian<uint16_t>(ip + 4, static_cast<uint16_t>(payload_bytes));
  }
}

}  // namespace weft

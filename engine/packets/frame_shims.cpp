#include "packets/frame_shims.hpp"

#include "packets/byte_order.hpp"
#include "packets/roce_formats.hpp"

namespace weft {

namespace {

constexpr size_t kEtherTypeBytes = 2;
constexpr size_t kNextOfIntermediateShimAt = 4;
constexpr size_t kNextOfIntShimAt = 2;

// Goes on behind a header of `size` bytes which says at `next_at` what follows it.
bool pass(std::span<const uint8_t> frame, BehindShims& place, size_t size, size_t next_at) {
  if (frame.size() - place.rest_at < size) return false;
  place.ethertype_at = place.rest_at + next_at;
  place.rest_at += size;
  place.ethertype = load_big_endian<uint16_t>(frame.data() + place.ethertype_at);
  return true;
}

}  // namespace

std::optional<BehindShims> behind_shims(std::span<const uint8_t> frame) {
  BehindShims place;
  if (!pass(frame, place, roce::kEthernetBytes, roce::kEthernetBytes - kEtherTypeBytes)) return std::nullopt;
  if (place.ethertype == roce::kEtherTypeIntermediateShim &&
      !pass(frame, place, roce::kIntermediateShimBytes, kNextOfIntermediateShimAt))
    return std::nullopt;
  if (place.ethertype == roce::kEtherTypeIntShim &&
      !pass(frame, place, roce::kIntShimBytes, kNextOfIntShimAt))
    return std::nullopt;
  return place;
}

}  // namespace weft

#include "mac_control.hpp"

#include <algorithm>
#include <cstring>

#include "byte_order.hpp"

namespace weft::mac_control {

namespace {

constexpr roce::MacAddress kDestination = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
constexpr size_t kOpcodeAt = 14;
constexpr size_t kClassVectorAt = 16;
constexpr size_t kQuantaAt = 18;

}  // namespace

PacketPtr make_priority_pause(PacketPool& pool, const roce::MacAddress& source, const PriorityPause& pause) {
  PacketPtr packet = pool.allocate(kFrameBytes);
  uint8_t* at = packet->data();
  std::memset(at, 0, kFrameBytes);
  std::copy(kDestination.begin(), kDestination.end(), at);
  std::copy(source.begin(), source.end(), at + 6);
  store_big_endian<uint16_t>(at + 12, kEtherType);
  store_big_endian<uint16_t>(at + kOpcodeAt, kPriorityPauseOpcode);
  store_big_endian<uint16_t>(at + kClassVectorAt, pause.enabled_classes);
  for (size_t i = 0; i < kClasses; ++i) store_big_endian<uint16_t>(at + kQuantaAt + 2 * i, pause.quanta[i]);
  return packet;
}

std::optional<PriorityPause> parse_priority_pause(std::span<const uint8_t> frame) {
  if (frame.size() < kQuantaAt + 2 * kClasses || ethertype_of(frame) != kEtherType ||
      load_big_endian<uint16_t>(frame.data() + kOpcodeAt) != kPriorityPauseOpcode)
    return std::nullopt;
  PriorityPause pause;
  pause.enabled_classes = frame[kClassVectorAt + 1];
  for (size_t i = 0; i < kClasses; ++i)
    pause.quanta[i] = load_big_endian<uint16_t>(frame.data() + kQuantaAt + 2 * i);
  return pause;
}

}  // namespace weft::mac_control

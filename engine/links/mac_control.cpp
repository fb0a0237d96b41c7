#include "links/mac_control.hpp"

#include <algorithm>
#include <cstring>

#include "packets/byte_order.hpp"

namespace weft::mac_control {

namespace {

constexpr size_t kOpcodeAt = 14;
constexpr size_t kClassVectorAt = 16;
constexpr size_t kQuantaAt = 18;

// Of an update of credits: request, lanes, then FCTBS and FCCL of each lane.
constexpr size_t kRequestAt = 14;
constexpr size_t kEnabledLanesAt = 15;
constexpr size_t kLanesAt = 16;
constexpr size_t kLaneBytes = 4;
constexpr uint16_t kBlockMask = 0x0fff;

PacketPtr make_frame(PacketPool& pool, const roce::MacAddress& source, uint16_t ethertype) {
  PacketPtr packet = pool.allocate(kFrameBytes);
  uint8_t* at = packet->data();
  std::memset(at, 0, kFrameBytes);
  std::copy(kDestination.begin(), kDestination.end(), at);
  std::copy(source.begin(), source.end(), at + 6);
  store_big_endian<uint16_t>(at + 12, ethertype);
  return packet;
}

}  // namespace

PacketPtr make_priority_pause(PacketPool& pool, const roce::MacAddress& source, const PriorityPause& pause) {
  PacketPtr packet = make_frame(pool, source, kEtherType);
  uint8_t* at = packet->data();
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

PacketPtr make_credit_update(PacketPool& pool, const roce::MacAddress& source, const CreditUpdate& update) {
  PacketPtr packet = make_frame(pool, source, kCreditEtherType);
  uint8_t* at = packet->data();
  at[kRequestAt] = update.is_request ? 1 : 0;
  at[kEnabledLanesAt] = update.enabled_lanes;
  for (size_t i = 0; i < kClasses; ++i) {
    uint8_t* lane = at + kLanesAt + kLaneBytes * i;
    store_big_endian<uint16_t>(lane, update.sent_blocks[i] & kBlockMask);
    store_big_endian<uint16_t>(lane + 2, update.limit_blocks[i] & kBlockMask);
  }
  return packet;
}

std::optional<CreditUpdate> parse_credit_update(std::span<const uint8_t> frame) {
  if (frame.size() < kLanesAt + kLaneBytes * kClasses || !is_credit_update(frame) || frame[kRequestAt] > 1)
    return std::nullopt;
  CreditUpdate update;
  update.is_request = frame[kRequestAt] == 1;
  update.enabled_lanes = frame[kEnabledLanesAt];
  for (size_t i = 0; i < kClasses; ++i) {
    const uint8_t* lane = frame.data() + kLanesAt + kLaneBytes * i;
    update.sent_blocks[i] = load_big_endian<uint16_t>(lane) & kBlockMask;
    update.limit_blocks[i] = load_big_endian<uint16_t>(lane + 2) & kBlockMask;
  }
  return update;
}

}  // namespace weft::mac_control

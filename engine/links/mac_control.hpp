// Frames that a port's MAC sends and takes itself: priority-based pause (IEEE 802.1Q-2018, clause 36; frame
// format IEEE 802.3-2018, annex 31D), and updates of credits (docs/spec/frames.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "packets/packet.hpp"
#include "packets/roce_formats.hpp"

namespace weft::mac_control {

constexpr int kClasses = 8;
// The smallest Ethernet frame without its FCS.
constexpr size_t kFrameBytes = 60;
constexpr uint16_t kEtherType = 0x8808;
constexpr uint16_t kPriorityPauseOpcode = 0x0101;
// Quanta count the time of 512 bits, which is that of so many bytes.
constexpr uint64_t kQuantumBytes = 64;

struct PriorityPause {
  uint8_t enabled_classes = 0;  // bit per class that the frame is about
  std::array<uint16_t, kClasses> quanta{};
};

// IEEE's second EtherType for local experiments. Frames to another address have a shim of it
// (docs/spec/frames.md).
constexpr uint16_t kCreditEtherType = roce::kEtherTypeIntermediateShim;
constexpr roce::MacAddress kDestination = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

// In one frame what InfiniBand's flow control packets carry, one for each virtual lane (InfiniBand
// Architecture 1.4, volume 1, 7.9.4): FCTBS and FCCL, of 12 bits each.
struct CreditUpdate {
  bool is_request = false;  // the far end is to answer at once
  uint8_t enabled_lanes = 0;
  std::array<uint16_t, kClasses> sent_blocks{};
  std::array<uint16_t, kClasses> limit_blocks{};
};

inline uint16_t ethertype_of(std::span<const uint8_t> frame) {
  return frame.size() < 14 ? uint16_t{0} : static_cast<uint16_t>(frame[12] << 8 | frame[13]);
}

inline bool is_credit_update(std::span<const uint8_t> frame) {
  return ethertype_of(frame) == kCreditEtherType &&
         std::equal(kDestination.begin(), kDestination.end(), frame.begin());
}

PacketPtr make_priority_pause(PacketPool& pool, const roce::MacAddress& source, const PriorityPause& pause);
// Nothing for a frame of another type or opcode, or one that is cut short.
std::optional<PriorityPause> parse_priority_pause(std::span<const uint8_t> frame);
PacketPtr make_credit_update(PacketPool& pool, const roce::MacAddress& source, const CreditUpdate& update);
std::optional<CreditUpdate> parse_credit_update(std::span<const uint8_t> frame);

}  // namespace weft::mac_control

// Packet trimming at a port: a packet that its queue has no room for is cut and sent on in another queue, so
// that its receiver hears of the loss. As SAI has it (PACKET_ADMISSION_FAIL_ACTION_DROP_AND_TRIM of a buffer
// profile, and the switch's PACKET_TRIM_ attributes), which SONiC configures.
#pragma once

#include <array>
#include <cstdint>

#include "observe/traffic_counter.hpp"

namespace weft {

struct TrimmingConfig {
  static constexpr uint32_t kSmallestBytes = 64;  // an Ethernet frame
  static constexpr uint32_t kDscps = 64;

  uint32_t size_bytes = 128;     // that stay of a packet, from its Ethernet header on
  uint8_t dscp = 0;              // that trimmed packets get
  uint8_t priority_class = 0;    // the queue they are sent in
  uint8_t classes = 0;           // a bit for each queue that trims instead of dropping
  uint64_t trimmable_dscps = 0;  // a bit for each DSCP of packets that may be trimmed
  // Beyond the port's own capacity, for priority_class alone. A shared buffer has reservations by class.
  uint64_t reserved_bytes = 0;

  bool trims(int of_class) const { return (classes >> of_class & 1) != 0; }
  bool may_trim(uint8_t packet_dscp) const { return (trimmable_dscps >> packet_dscp & 1) != 0; }
};

// Of a port that trims.
struct Trimming {
  TrimmingConfig config;
  // By the class that had no room: packets that were trimmed, and the bytes that were cut off them.
  std::array<TrafficCounter, 8> trimmed{};
};

}  // namespace weft

// Which of the fabric's paths a packet takes, as far as a host can choose: by the entropy that switches hash.
#pragma once

#include <cstdint>
#include <string_view>

#include "time/time.hpp"

namespace weft {

// 14 bits: the UDP source port 0xC000 | entropy, and over IPv6 the flow label that goes with it.
constexpr uint16_t kEntropyMask = 0x3FFF;

class PathChoice {
 public:
  virtual ~PathChoice() = default;
  virtual std::string_view name() const = 0;

  // The entropy of the packet that is about to be sent.
  virtual uint16_t entropy(TimePs now, uint64_t sequence, bool retransmission) = 0;
  // What became of packets; round_trip_ps is 0 if nobody knows which transmission was answered,
  // congestion_experienced: whether a switch marked the packet (CE).
  virtual void on_delivered(TimePs /*now*/, uint16_t /*entropy*/, TimePs /*round_trip_ps*/,
                            bool /*congestion_experienced*/) {}
  virtual void on_lost(TimePs /*now*/, uint16_t /*entropy*/) {}
  // A retransmission timeout: nothing that was sent has been answered for long.
  virtual void on_timeout(TimePs /*now*/) {}
  // A CNP: some switch marked a packet of the connection.
  virtual void on_congestion_notification(TimePs /*now*/) {}
};

}  // namespace weft

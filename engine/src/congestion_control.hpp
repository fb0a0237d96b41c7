// Congestion control of a queue pair: events in, window and rate out. One algorithm a file.
#pragma once

#include <cstdint>
#include <string_view>

#include "roce_formats.hpp"
#include "time.hpp"

namespace weft {

// One acknowledgement, seen from the sender.
struct AcknowledgementEvent {
  TimePs now = 0;
  uint64_t acknowledged_bytes = 0;            // frame bytes that this acknowledgement newly covers
  uint64_t in_flight_bytes = 0;               // frame bytes still unacknowledged
  TimePs round_trip_ps = 0;                   // of the newest packet covered; 0 if that one was retransmitted
  uint32_t psn = 0;                           // newest sequence number covered
  uint32_t next_psn = 0;                      // next sequence number the sender will send
  const roce::IntStack* telemetry = nullptr;  // the receiver's echo, null without INT
};

class CongestionControl {
 public:
  virtual ~CongestionControl() = default;
  virtual std::string_view name() const = 0;

  // Frame bytes that may be unacknowledged. One packet may always be in flight.
  virtual uint64_t window_bytes() const = 0;
  // Rate at which frames may leave, in bits per second of emulated time; 0: as fast as the port takes them.
  virtual uint64_t pacing_rate_bps() const = 0;

  virtual void on_packet_sent(TimePs /*now*/, uint64_t /*frame_bytes*/, bool /*retransmission*/) {}
  virtual void on_acknowledgement(const AcknowledgementEvent& /*event*/) {}
  virtual void on_congestion_notification(TimePs /*now*/) {}
  // A sequence NAK or a retransmission timeout.
  virtual void on_loss(TimePs /*now*/, bool /*timeout*/) {}
  // Timers of the algorithm (rate increase and the like).
  virtual TimePs next_deadline() const { return kNever; }
  virtual void on_deadline(TimePs /*now*/) {}
};

}  // namespace weft

// Congestion control of a queue pair: events in, window and rate out. One algorithm a file; the file
// registers it (congestion/registry.hpp).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "packets/int_rates.hpp"
#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft {

// What an algorithm knows of its path when it starts.
struct PathProperties {
  uint64_t line_rate_bps = 0;         // of the sender's port
  TimePs base_round_trip_ps = 0;      // of an idle path to the farthest peer
  uint32_t frame_bytes = 0;           // of a full data packet, from Ethernet to iCRC
  uint32_t ack_interval_packets = 1;  // acknowledgements come in steps of so many packets
  TimePs nearest_round_trip_ps = 0;   // of an idle path to the nearest peer; 0: all are as far
  uint32_t nearest_hops = 0;          // routers on that path
  TimePs hop_round_trip_ps = 0;       // what each router more adds to an idle path
  bool sprayed = false;               // a flow's packets take several paths at once
  IntRates int_rates_bps = kStandardIntRatesBps;
};

// One acknowledgement, seen from the sender. Sequence numbers count packets from the queue pair's start.
struct AcknowledgementEvent {
  TimePs now = 0;
  uint64_t acknowledged_bytes = 0;            // frame bytes that this acknowledgement newly covers
  uint64_t acknowledged_packets = 0;          // packets that it newly covers
  uint64_t in_flight_bytes = 0;               // frame bytes still unacknowledged
  TimePs round_trip_ps = 0;                   // of the newest packet covered; 0 if that one was retransmitted
  uint64_t sequence = 0;                      // newest packet covered
  uint64_t next_sequence = 0;                 // the next packet that the sender will send for the first time
  uint8_t hops = 0;                           // routers that the acknowledgement itself passed
  bool congestion_experienced = false;        // a switch marked (CE) the packets that it newly covers
  const roce::IntStack* telemetry = nullptr;  // the receiver's echo, null without INT
};

// What a switch says at once of a packet that met a queue (docs/spec/host-transports.md).
struct SwitchNotification {
  TimePs now = 0;
  TimePs sent_ps = 0;          // when that packet was sent
  uint64_t queue_bytes = 0;    // that it left behind in its queue
  uint64_t link_rate_bps = 0;  // of the queue's port
};

class CongestionControl {
 public:
  virtual ~CongestionControl() = default;
  virtual std::string_view name() const = 0;

  // Once, by the queue pair that it is to serve. Throws std::invalid_argument for a second one.
  void attach() {
    if (attached_) throw std::invalid_argument("this congestion control serves another queue pair already");
    attached_ = true;
  }

  // Frame bytes that may be unacknowledged. One packet may always be in flight.
  virtual uint64_t window_bytes() const = 0;
  // Rate at which frames may leave, in bits per second of emulated time; 0: as fast as the port takes them.
  virtual uint64_t pacing_rate_bps() const = 0;

  virtual void on_packet_sent(TimePs /*now*/, uint64_t /*frame_bytes*/, bool /*retransmission*/) {}
  virtual void on_acknowledgement(const AcknowledgementEvent& /*event*/) {}
  // A CNP.
  virtual void on_congestion_notification(TimePs /*now*/) {}
  // From a switch, for controls with CongestionNeeds::notifications.
  virtual void on_switch_notification(const SwitchNotification& /*notification*/) {}
  // Whether data packets are to tell switches of a flow's first and last window: once, before the first
  // packet.
  virtual bool marks_ends_of_flows() const { return false; }
  // A sequence NAK, losses that a selective acknowledgement tells, or a retransmission timeout.
  virtual void on_loss(TimePs /*now*/, bool /*timeout*/) {}
  // The same, for controls that count: frame bytes of the packets that are lost by this event.
  virtual void on_lost_bytes(TimePs now, bool timeout, uint64_t /*lost_bytes*/) { on_loss(now, timeout); }
  // Timers of the algorithm (rate increase and the like).
  virtual TimePs next_deadline() const { return kNever; }
  virtual void on_deadline(TimePs /*now*/) {}

 private:
  bool attached_ = false;
};

// A window that no sender fills, for algorithms that set a rate only.
constexpr uint64_t kUnlimitedWindowBytes = ~0ull;

}  // namespace weft

// Parameters and counters of a reliable-connection queue pair.
#pragma once

#include <cstdint>

#include "observe/statistics.hpp"
#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft {

enum class Retransmission : uint8_t {
  kGoBackN,          // the responder takes packets in order only; everything from a gap on is sent again
  kSelectiveRepeat,  // WRITEs are placed as they arrive; what was lost alone is sent again
};

// Packets in the middle of long messages of lengths may travel together: one packet that stands for many.
struct SegmentConfig {
  uint32_t packets = 1;        // at most so many, 1 to Packet::kMaxPackets; 1: each on its own
  uint64_t message_bytes = 0;  // of messages that are at least so long
  uint64_t line_rate_bps = 0;  // of the port, at which they leave
};

struct RcConfig {
  uint32_t queue_pair = 0;         // own number, 24 bits
  uint32_t remote_queue_pair = 0;  // the peer's
  uint32_t initial_psn = 0;        // of the first packet we send, 24 bits
  uint32_t remote_initial_psn = 0;

  roce::MacAddress source_mac{};
  roce::MacAddress destination_mac{};  // of the gateway, or of the peer on the same link
  roce::IpAddress source_ip;
  roce::IpAddress destination_ip;
  uint16_t source_udp_port = 0xC000;  // entropy for ECMP
  uint8_t hop_limit = 64;
  uint8_t data_class = roce::kDataClass;  // in which data travels, below roce::kDataClasses

  uint32_t path_mtu_bytes = 1024;  // 256, 512, 1024, 2048 or 4096 payload bytes a packet
  bool telemetry = false;          // data carries the INT shim, acknowledgements echo it

  // An acknowledgement is asked for with the last packet of a message, with every ack_interval_packets-th
  // packet, and with a packet after which the window is closed.
  uint32_t ack_interval_packets = 1;

  Retransmission retransmission = Retransmission::kGoBackN;
  // Selective repeat: a packet counts as lost if one sent so much later has arrived. More than 0 only makes
  // sense where packets overtake each other.
  TimePs reordering_window_ps = 0;

  // Time without progress after which the oldest unacknowledged packet is sent again (go-back-N: and all
  // after it). It is longer where round trips are (RFC 6298), and doubles with every retry, at most
  // timeout_backoff_limit times. See retransmission_timeout_ps().
  TimePs retransmission_timeout_ps = 0;
  uint32_t timeout_backoff_limit = 5;
  uint32_t retry_limit = 7;  // timeouts in a row without progress until the queue pair fails

  // READs whose responses a requester may still expect, and that a responder has resources for.
  uint32_t max_outstanding_reads = 16;

  uint32_t rnr_retry_limit = 7;  // 7: for ever, as in the specification
  uint8_t rnr_timer_code = 4;  // how long a peer is to wait while no receive is posted (table 45): 4 = 40 us
  // The specification has a WRITE with immediate consume a posted receive. False delivers the immediate
  // without one.
  bool receive_for_immediate = false;

  // Acknowledgements say how many receives are posted, and SENDs beyond what they promise are held back: at
  // both ends or neither.
  bool end_to_end_credits = false;

  TimePs cnp_interval_ps = 50 * kPsPerUs;  // at most one CNP in this time

  SegmentConfig segments;
};

// Throws std::invalid_argument naming the first parameter that is out of range.
void check(const RcConfig& config);

// A timeout well above the host's scheduling jitter: the larger of `round_trips` base round trips and the
// wall-clock floor, which under the real clock is worth floor / dilation of emulated time (0 under the
// virtual clock).
TimePs retransmission_timeout_ps(TimePs base_round_trip_ps, double round_trips, int64_t wall_clock_floor_ns,
                                 double dilation);

// UDP source port of a queue pair: 0xC000 with 14 bits of entropy, for ECMP, drawn by the seed for these
// addresses and queue pair numbers.
uint16_t entropy_udp_port(uint64_t seed, const roce::IpAddress& source, const roce::IpAddress& destination,
                          uint32_t queue_pair, uint32_t remote_queue_pair);

// IPv6 flow label that goes with a UDP source port: the same entropy, for switches that hash the label (RFC
// 6438). Never 0, which means unlabelled; folded as Linux's RDMA core folds a label into a port, it gives the
// port.
uint32_t entropy_flow_label(uint16_t source_udp_port);

// Addresses and entropy of what is sent by a configuration that has them (RcConfig, AggregationConfig).
template <class Config>
roce::RoceHeaders headers_on_path(const Config& config) {
  roce::RoceHeaders headers;
  headers.source_mac = config.source_mac;
  headers.destination_mac = config.destination_mac;
  headers.source_ip = config.source_ip;
  headers.destination_ip = config.destination_ip;
  headers.source_udp_port = config.source_udp_port;
  if (config.source_ip.is_ipv6) headers.flow_label = entropy_flow_label(config.source_udp_port);
  return headers;
}

// Headers of everything a queue pair sends to its peer: addresses, entropy, hop limit and queue pair number.
roce::RoceHeaders headers_to_peer(const RcConfig& config);

// Of its data, with room for INT if the configuration asks for it; and of its acknowledgements and CNPs.
roce::RoceHeaders data_headers(const RcConfig& config);
roce::RoceHeaders control_headers(const RcConfig& config);
// Has a packet take the path of this entropy, 14 bits.
void set_entropy(roce::RoceHeaders& headers, uint16_t entropy);

// Frame of a data packet with a full payload, from Ethernet to iCRC (go-back-N: within a message).
size_t full_frame_bytes(const RcConfig& config);

// What an RNR timer code stands for (InfiniBand specification, table 45).
TimePs rnr_timer_ps(uint8_t code);

// What the requester, the responder, and packets dropped without an answer come to.
#define WEFT_RC_COUNTERS(STATISTIC)                                                                         \
  STATISTIC(uint64_t, data_packets_sent, "retransmissions included")                                        \
  STATISTIC(uint64_t, data_bytes_sent, "payload, retransmissions included")                                 \
  STATISTIC(uint64_t, segments_sent, "that stood for several data packets")                                 \
  STATISTIC(uint64_t, packets_sent_in_segments, "data packets that segments stood for")                     \
  STATISTIC(uint64_t, retransmitted_packets, "data packets sent again")                                     \
  STATISTIC(uint64_t, timeouts, "retransmission timeouts")                                                  \
  STATISTIC(uint64_t, sequence_naks_received, "NAKs that name a missing packet")                            \
  STATISTIC(uint64_t, rnr_naks_received, "the receiver was not ready")                                      \
  STATISTIC(uint64_t, fatal_naks_received, "NAKs that end the connection")                                  \
  STATISTIC(uint64_t, acknowledgements_received, "ACKs")                                                    \
  STATISTIC(uint64_t, stale_acknowledgements, "for something acknowledged before")                          \
  STATISTIC(uint64_t, invalid_acknowledgements, "for something never sent, or of an unknown syndrome")      \
  STATISTIC(uint64_t, cnps_received, "congestion notifications")                                            \
  STATISTIC(uint64_t, data_packets_received, "accepted; go-back-N: in order")                               \
  STATISTIC(uint64_t, data_bytes_received, "payload, accepted")                                             \
  STATISTIC(uint64_t, duplicate_packets, "received before")                                                 \
  STATISTIC(uint64_t, out_of_sequence_packets, "received behind a gap")                                     \
  STATISTIC(uint64_t, out_of_window_packets, "selective repeat: too far ahead of the gap to be remembered") \
  STATISTIC(uint64_t, ce_marked_packets, "that a switch marked (CE)")                                       \
  STATISTIC(uint64_t, acknowledgements_sent, "ACKs")                                                        \
  STATISTIC(uint64_t, sequence_naks_sent, "NAKs that name a missing packet")                                \
  STATISTIC(uint64_t, rnr_naks_sent, "no receive was posted")                                               \
  STATISTIC(uint64_t, fatal_naks_sent, "NAKs that end the connection")                                      \
  STATISTIC(uint64_t, cnps_sent, "congestion notifications")                                                \
  STATISTIC(uint64_t, wrong_source, "dropped: not from the address of the connected peer")                  \
  STATISTIC(uint64_t, wrong_partition_key, "dropped")                                                       \
  STATISTIC(uint64_t, unexpected_opcode, "dropped: not a packet for an RC queue pair in this state")        \
  STATISTIC(uint64_t, dropped_in_error, "dropped: arrived after the queue pair had failed")

struct RcCounters {
  WEFT_STATISTICS(RcCounters, WEFT_RC_COUNTERS)

  RcCounters& operator+=(const RcCounters& others) {
    add_statistics(*this, others);
    return *this;
  }
};

}  // namespace weft

// Parameters and counters of a reliable-connection queue pair.
#pragma once

#include <cstdint>

#include "hosts/line_format.hpp"
#include "hosts/memory_region.hpp"
#include "hosts/options.hpp"
#include "observe/statistics.hpp"
#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft {

enum class Retransmission : uint8_t {
  kGoBackN,          // the responder takes packets in order only; everything from a gap on is sent again
  kSelectiveRepeat,  // WRITEs are placed as they arrive; what was lost alone is sent again
};

// Options of a queue pair. Python's keyword arguments have these names.
//
// retransmission_timeout_ps: the oldest unacknowledged packet is sent again (go-back-N: and all after it).
// The time is longer where round trips are (RFC 6298), and doubles with every retry, at most
// timeout_backoff_limit times. See retransmission_timeout_ps().
// cnp_interval_ps: by default as in Zhu et al., SIGCOMM 2015, section 3.1.
#define WEFT_RC_OPTIONS(OPTION)                                                                            \
  OPTION(uint32_t, initial_psn, 0, "of the first packet sent, 24 bits")                                    \
  OPTION(uint32_t, remote_initial_psn, 0, "of the first packet that the peer sends, 24 bits")              \
  OPTION(uint8_t, data_class, roce::kDataClass, "in which data travel")                                    \
  OPTION(uint32_t, path_mtu_bytes, 1024, "256, 512, 1024, 2048 or 4096 payload bytes a packet")            \
  OPTION(bool, telemetry, false, "data carry the INT shim, acknowledgements echo it")                      \
  OPTION(uint32_t, ack_interval_packets, 1,                                                                \
         "after how many packets an acknowledgement is asked for; it is also with the last of a message "  \
         "and with one that closes the window")                                                            \
  OPTION(Retransmission, retransmission, Retransmission::kGoBackN,                                         \
         "go-back-n or selective-repeat, at both ends")                                                    \
  OPTION(TimePs, reordering_window_ps, 0,                                                                  \
         "selective repeat: a packet counts as lost if one sent so much later has arrived. Above 0 only "  \
         "where packets overtake each other")                                                              \
  OPTION(TimePs, retransmission_timeout_ps, 0,                                                             \
         "time without progress after which packets are sent again; above the round trip and, on a real "  \
         "clock, the host's jitter")                                                                       \
  OPTION(uint32_t, timeout_backoff_limit, 5, "how often the timeout doubles, 0 to 20")                     \
  OPTION(uint32_t, retry_limit, 7, "timeouts in a row without progress until the queue pair fails")        \
  OPTION(uint32_t, max_outstanding_reads, 16,                                                              \
         "READs and atomics under way, the same at both ends, 1 to 128")                                   \
  OPTION(uint32_t, rnr_retry_limit, 7, "7: for ever, as in the specification")                             \
  OPTION(uint8_t, rnr_timer_code, 4,                                                                       \
         "how long a peer waits while no receive is posted (table 45): 4 = 40 us")                         \
  OPTION(bool, receive_for_immediate, false,                                                               \
         "a WRITE with immediate consumes a posted receive, as the specification has it; otherwise it "    \
         "needs none")                                                                                     \
  OPTION(bool, end_to_end_credits, false,                                                                  \
         "acknowledgements say how many receives are posted, and SENDs beyond them wait: at both ends or " \
         "neither")                                                                                        \
  OPTION(TimePs, cnp_interval_ps, 50 * kPsPerUs, "at most one CNP in this time")                           \
  OPTION(LineFormat, line_format, LineFormat::kNone,                                                       \
         "none, or ll or ll128: WRITEs travel as lines with flags, the same at both ends")                 \
  OPTION(uint32_t, segment_packets, 1,                                                                     \
         "packets in the middle of a long message of lengths that travel as one, 1 to 255")                \
  OPTION(uint64_t, segment_message_bytes, 0, "of messages that are at least so long")

// As rnr_retry_limit.
constexpr uint32_t kRetriesForEver = 7;

struct RcConfig {
  uint32_t queue_pair = 0;         // own number, 24 bits
  uint32_t remote_queue_pair = 0;  // the peer's

  roce::MacAddress source_mac{};
  roce::MacAddress destination_mac{};  // of the gateway, or of the peer on the same link
  roce::IpAddress source_ip;
  roce::IpAddress destination_ip;
  uint16_t source_udp_port = 0xC000;  // entropy for ECMP
  uint8_t hop_limit = 64;
  uint64_t line_rate_bps = 0;  // of the port, at which segments leave
  uint8_t remote_access =
      kAnyRemoteAccess;         // what the peer may ask for, whatever regions grant: go-back-N, UC and MRC
  uint32_t max_reads_sent = 0;  // READs that it has under way itself; 0: as many as it answers
  uint32_t even_retries = 0;    // MRC and UET: so many timeouts in a row come before they begin to double

  WEFT_OPTIONS(RcConfig, WEFT_RC_OPTIONS)
};

// Throws std::invalid_argument naming the first parameter that is out of range.
void check(const RcConfig& config);
void check_path_mtu(uint32_t path_mtu_bytes);

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
  STATISTIC(uint64_t, switch_notifications_received, "of queues, from switches")                            \
  STATISTIC(uint64_t, stale_switch_notifications, "of packets that were answered before")                   \
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

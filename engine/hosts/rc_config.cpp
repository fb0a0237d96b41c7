#include "hosts/rc_config.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "packets/byte_order.hpp"
#include "packets/packet.hpp"
#include "packets/psn.hpp"
#include "packets/roce_codec.hpp"
#include "time/random.hpp"

namespace weft {
namespace {

constexpr uint32_t kMaxOutstandingReads = 128;

void require_24_bits(const char* parameter, uint32_t value) {
  if (value > kPsnMask) refuse_setting(std::string(parameter) + " is", value, "24 bits");
}

// Hundredths of a millisecond, by timer code.
constexpr std::array<uint32_t, 32> kRnrTimers10us = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

}  // namespace

void check_path_mtu(uint32_t path_mtu_bytes) {
  if (!std::has_single_bit(path_mtu_bytes) || path_mtu_bytes < 256 || path_mtu_bytes > 4096)
    refuse_setting("path_mtu_bytes is", path_mtu_bytes, "256, 512, 1024, 2048, 4096");
}

void check(const RcConfig& config) {
  require_24_bits("queue_pair", config.queue_pair);
  require_24_bits("remote_queue_pair", config.remote_queue_pair);
  require_24_bits("initial_psn", config.initial_psn);
  require_24_bits("remote_initial_psn", config.remote_initial_psn);
  check_path_mtu(config.path_mtu_bytes);
  if (config.source_ip.is_ipv6 != config.destination_ip.is_ipv6) {
    throw std::invalid_argument("source_ip and destination_ip are of different IP versions");
  }
  if (config.data_class > roce::kControlClass) refuse_setting("data_class is", config.data_class, "0 to 6");
  if (config.ack_interval_packets == 0) refuse_setting("ack_interval_packets is", 0, "1 or more");
  if (config.retransmission_timeout_ps <= 0) {
    throw std::invalid_argument("retransmission_timeout_ps is " +
                                std::to_string(config.retransmission_timeout_ps) +
                                " (valid: more than 0; see retransmission_timeout_ps())");
  }
  if (config.timeout_backoff_limit > 20)
    refuse_setting("timeout_backoff_limit is", config.timeout_backoff_limit, "0 to 20");
  if (config.max_outstanding_reads == 0 || config.max_outstanding_reads > kMaxOutstandingReads)
    refuse_setting("max_outstanding_reads is", config.max_outstanding_reads, "1 to 128");
  if (config.rnr_retry_limit > 7)
    refuse_setting("rnr_retry_limit is", config.rnr_retry_limit, "0 to 6, 7 for ever");
  if (config.rnr_timer_code > 31) refuse_setting("rnr_timer_code is", config.rnr_timer_code, "0 to 31");
  if (config.reordering_window_ps < 0) throw std::invalid_argument("reordering_window_ps is negative");
  if (config.segment_packets == 0 || config.segment_packets > Packet::kMaxPackets)
    refuse_setting("segment_packets is", config.segment_packets, "1 to 255");
  if (config.cnp_interval_ps < 0) throw std::invalid_argument("cnp_interval_ps is negative");
}

TimePs retransmission_timeout_ps(TimePs base_round_trip_ps, double round_trips, int64_t wall_clock_floor_ns,
                                 double dilation) {
  if (dilation <= 0)
    throw std::invalid_argument("dilation is " + std::to_string(dilation) + " (valid: above 0)");
  const double floor_ps = static_cast<double>(wall_clock_floor_ns) * 1000.0 / dilation;
  const double path_ps = static_cast<double>(base_round_trip_ps) * round_trips;
  return static_cast<TimePs>(std::max({floor_ps, path_ps, 1.0}));
}

uint16_t entropy_udp_port(uint64_t seed, const roce::IpAddress& source, const roce::IpAddress& destination,
                          uint32_t queue_pair, uint32_t remote_queue_pair) {
  // Not a CRC: it is linear, so another seed would change all ports by one difference, and flows that a
  // switch's CRC sends one way would stay together whatever the seed.
  std::array<char, 40> flow;
  std::memcpy(flow.data(), source.bytes.data(), 16);
  std::memcpy(flow.data() + 16, destination.bytes.data(), 16);
  auto* numbers = reinterpret_cast<uint8_t*>(flow.data() + 32);
  store_big_endian<uint32_t>(numbers, queue_pair);
  store_big_endian<uint32_t>(numbers + 4, remote_queue_pair);
  Rng rng(seed, {flow.data(), flow.size()});
  return static_cast<uint16_t>(0xC000 | rng.below(0x4000));
}

uint32_t entropy_flow_label(uint16_t source_udp_port) {
  constexpr uint32_t kUpperBits = 1;
  return kUpperBits << 14 | ((source_udp_port & 0x3FFF) ^ kUpperBits);
}

roce::RoceHeaders headers_to_peer(const RcConfig& config) {
  roce::RoceHeaders headers = headers_on_path(config);
  headers.hop_limit = config.hop_limit;
  headers.bth.destination_qp = config.remote_queue_pair;
  return headers;
}

roce::RoceHeaders data_headers(const RcConfig& config) {
  roce::RoceHeaders headers = headers_to_peer(config);
  headers.dscp = roce::dscp_of_data(config.data_class);
  headers.ecn = config.data_class == roce::kControlClass ? roce::kNotEct : roce::kEct0;
  if (config.telemetry) headers.telemetry.emplace();
  return headers;
}

roce::RoceHeaders control_headers(const RcConfig& config) {
  roce::RoceHeaders headers = headers_to_peer(config);
  headers.dscp = roce::kControlDscp;
  headers.ecn = roce::kNotEct;
  return headers;
}

void set_entropy(roce::RoceHeaders& headers, uint16_t entropy) {
  constexpr uint16_t kFirstEntropyPort = 0xC000;
  headers.source_udp_port = static_cast<uint16_t>(kFirstEntropyPort | entropy);
  if (headers.source_ip.is_ipv6) headers.flow_label = entropy_flow_label(headers.source_udp_port);
}

size_t full_frame_bytes(const RcConfig& config) {
  roce::RoceHeaders headers = headers_to_peer(config);
  if (config.telemetry) headers.telemetry.emplace();
  const bool selective = config.retransmission == Retransmission::kSelectiveRepeat;
  headers.bth.opcode = selective ? roce::kRcWriteOnly : roce::kRcWriteMiddle;
  return roce::frame_bytes(headers, config.path_mtu_bytes);
}

TimePs rnr_timer_ps(uint8_t code) { return static_cast<TimePs>(kRnrTimers10us[code & 31]) * 10 * kPsPerUs; }

}  // namespace weft

#include "hosts/mrc/mrc_config.hpp"

#include <stdexcept>
#include <string>

#include "packets/mrc_codec.hpp"
#include "paths/random_paths.hpp"

namespace weft {
namespace {

[[noreturn]] void refuse_under_mrc(const char* option) {
  throw std::invalid_argument(std::string(option) + " does not go with MRC");
}

void require_dscp(const char* option, uint8_t dscp) {
  if (dscp > 63 || mrc::is_trimmed(dscp))
    refuse_setting(std::string(option) + " is", dscp, "0 to 63, but 12 and 16, those of trimmed packets");
}

void require_wimm(const char* option, uint32_t count) {
  if (count < 1 || count > mrc::kMaxOutstanding) {
    throw std::invalid_argument(std::string(option) + " is " + std::to_string(count) + " (valid: 1 to " +
                                std::to_string(mrc::kMaxOutstanding) + ")");
  }
}

void require_mpr(const char* option, uint32_t units) {
  static_assert(mrc::kMaxOutstanding / mrc::kMprUnitPsns == 128);
  if (units < 1 || units > 128) refuse_setting(std::string(option) + " is", units, "1 to 128");
}

}  // namespace

void check(const MrcConfig& config, const RcConfig& common) {
  check(common);
  if (common.retransmission != Retransmission::kSelectiveRepeat) refuse_under_mrc("retransmission go-back-n");
  if (common.telemetry) refuse_under_mrc("telemetry (INT)");
  if (common.end_to_end_credits) refuse_under_mrc("end_to_end_credits");
  if (common.line_format != LineFormat::kNone) refuse_under_mrc("a line format");
  if (common.segment_packets != 1) refuse_under_mrc("segment_packets above 1");
  if (config.probe_interval_ps <= 0) {
    throw std::invalid_argument("probe_interval_ps is " + std::to_string(config.probe_interval_ps) +
                                " (valid: above 0)");
  }
  if (config.ev_min_active > config.ev_count) {
    throw std::invalid_argument("ev_min_active is " + std::to_string(config.ev_min_active) +
                                " (valid: 0 to ev_count, " + std::to_string(config.ev_count) + ")");
  }
  if ((config.ev_event_mask & ~(mrc::kEventGood | mrc::kEventAssumedBad)) != 0) {
    throw std::invalid_argument("ev_event_mask is " + std::to_string(config.ev_event_mask) +
                                " (valid: 0 to 3)");
  }
  require_wimm("max_wimm", config.max_wimm);
  require_wimm("max_wimm_dest", config.max_wimm_dest);
  require_mpr("mpr", config.mpr);
  require_mpr("mpr_dest", config.mpr_dest);
  require_dscp("data_dscp", config.data_dscp);
  require_dscp("retransmission_dscp", config.retransmission_dscp);
  require_dscp("control_dscp", config.control_dscp);
  if (config.encapsulates() && !common.source_ip.is_ipv6)
    throw std::invalid_argument("EVs with an outer IPv6 header do not go with IPv4 addresses");
  for (const MrcPath& path : config.more_paths) {
    if (path.source_ip.is_ipv6 != common.source_ip.is_ipv6 ||
        path.destination_ip.is_ipv6 != common.source_ip.is_ipv6)
      throw std::invalid_argument("the planes of an MRC queue pair have addresses of different IP versions");
  }
}

uint64_t mrc_seed(uint64_t entropy_seed, uint32_t queue_pair, uint32_t remote_queue_pair) {
  return mixed(entropy_seed, uint64_t{queue_pair} << 32 | remote_queue_pair);
}

namespace mrc {

roce::RoceHeaders headers_of(const MrcPath& path) {
  roce::RoceHeaders headers;
  headers.source_mac = path.source_mac;
  headers.destination_mac = path.destination_mac;
  headers.source_ip = path.source_ip;
  headers.destination_ip = path.destination_ip;
  return headers;
}

std::vector<roce::RoceHeaders> headers_by_plane(const RcConfig& common, const MrcConfig& config) {
  std::vector<roce::RoceHeaders> planes{headers_to_peer(common)};
  for (const MrcPath& path : config.more_paths) {
    roce::RoceHeaders headers = planes.front();
    headers.source_mac = path.source_mac;
    headers.destination_mac = path.destination_mac;
    headers.source_ip = path.source_ip;
    headers.destination_ip = path.destination_ip;
    planes.push_back(headers);
  }
  return planes;
}

size_t full_frame_bytes(const RcConfig& common, bool encapsulated) {
  roce::RoceHeaders headers = headers_to_peer(common);
  headers.bth.opcode = kWriteMiddle;
  Headers mrc;
  if (encapsulated) mrc.outer_destination = headers.destination_ip;
  return frame_bytes(headers, mrc, common.path_mtu_bytes);
}

}  // namespace mrc
}  // namespace weft

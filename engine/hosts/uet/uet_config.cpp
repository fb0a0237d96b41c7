#include "hosts/uet/uet_config.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "hosts/uet/pdc_table.hpp"

namespace weft {
namespace {

[[noreturn]] void refuse_under_uet(const char* option) {
  throw std::invalid_argument(std::string(option) + " does not go with UET");
}

void require_uet_dscp(const char* option, uint8_t dscp) {
  if (dscp > 63 || uet::is_trimmed(dscp))
    refuse_setting(std::string(option) + " is", dscp, "0 to 63, but 12 and 16, those of trimmed packets");
}

}  // namespace

void check(const UetConfig& config, const RcConfig& common) {
  check(common);
  if (common.retransmission != retransmission_of(config.service)) {
    const bool selective = common.retransmission == Retransmission::kSelectiveRepeat;
    throw std::invalid_argument(selective
                                    ? "retransmission selective-repeat does not go with service rod"
                                    : "retransmission go-back-n does not go with services rud, rudi and uud");
  }
  if (common.telemetry) refuse_under_uet("telemetry (INT)");
  if (common.end_to_end_credits) refuse_under_uet("end_to_end_credits");
  if (common.line_format != LineFormat::kNone) refuse_under_uet("a line format");
  if (common.segment_packets != 1) refuse_under_uet("segment_packets above 1");
  if (!has_pdcs(config.service) && config.receiver_credits)
    throw std::invalid_argument("receiver_credits need service rud or rod");
  if (config.max_pdcs == 0 || config.max_pdcs > uet::kMostPdcs)
    refuse_setting("max_pdcs is", config.max_pdcs, "1 to 32767");
  if (config.pdc_idle_ps <= 0) {
    throw std::invalid_argument("pdc_idle_ps is " + std::to_string(config.pdc_idle_ps) + " (valid: above 0)");
  }
  require_uet_dscp("data_dscp", config.data_dscp);
  require_uet_dscp("retransmission_dscp", config.retransmission_dscp);
  require_uet_dscp("control_dscp", config.control_dscp);
}

namespace uet {

TimePs target_silence_ps(const RcConfig& common, const UetConfig& config) {
  constexpr TimePs kMost = kNever / 4;
  const uint32_t limit = common.timeout_backoff_limit;
  // Timeouts that double, then others that are all as long as the last of them.
  const uint64_t doubling = std::min(common.retry_limit, limit);
  const uint64_t timeouts = (uint64_t{1} << (doubling + 1)) - 1 + ((common.retry_limit - doubling) << limit);
  const TimePs most_timeout_ps = kMost / static_cast<TimePs>(timeouts);
  const TimePs of_timeouts_ps =
      std::min(common.retransmission_timeout_ps, most_timeout_ps) * static_cast<TimePs>(timeouts);
  return 2 * of_timeouts_ps + std::min(config.pdc_idle_ps, kMost);
}

size_t full_frame_bytes(const RcConfig& common, const UetConfig& config) {
  return data_frame_bytes(common, config, common.path_mtu_bytes);
}

size_t data_frame_bytes(const RcConfig& common, const UetConfig& config, uint64_t payload_bytes) {
  const bool is_ipv6 = common.source_ip.is_ipv6;
  if (config.service == UetService::kRudi) return frame_bytes<Rudi, Standard>(is_ipv6, payload_bytes);
  if (config.service == UetService::kUud) return frame_bytes<Uud, Standard>(is_ipv6, payload_bytes);
  return config.receiver_credits ? frame_bytes<Request, RequestCcState, Standard>(is_ipv6, payload_bytes)
                                 : frame_bytes<Request, Standard>(is_ipv6, payload_bytes);
}

}  // namespace uet
}  // namespace weft

// Parameters of a queue pair of Ultra Ethernet Transport, beyond those that it shares with RC.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hosts/options.hpp"
#include "hosts/rc_config.hpp"
#include "packets/uet_frame.hpp"
#include "time/time.hpp"

namespace weft {

// Delivery service of the packet delivery sublayer.
enum class UetService : uint8_t {
  kRud,   // reliable, unordered
  kRod,   // reliable, ordered
  kRudi,  // reliable, unordered, without PDCs, of operations that may be done twice
  kUud,   // unreliable, unordered, without PDCs
};

// Options of a queue pair of UET. Python's keyword arguments have these names.
#define WEFT_UET_OPTIONS(OPTION)                                                                        \
  OPTION(UetService, service, UetService::kRud, "rud, rod, rudi or uud, at both ends")                  \
  OPTION(uint32_t, max_pdcs, 4096, "PDCs that a NIC holds at once as initiator, and as many as target") \
  OPTION(TimePs, pdc_idle_ps, 100 * kPsPerUs,                                                           \
         "an initiator closes its PDC after so long with nothing to do")                                \
  OPTION(bool, receiver_credits, false, "RCCC: initiators send what their targets have granted")        \
  OPTION(uint32_t, advance_bytes, 16384, "RCCC: of a new PDC that need no credit")                      \
  OPTION(uint8_t, data_dscp, uet::kDscpTrimmable, "of data that is sent for the first time, of probes") \
  OPTION(uint8_t, retransmission_dscp, uet::kDscpTrimmableRetransmission, "of data that is sent again") \
  OPTION(uint8_t, control_dscp, uet::kDscpControl, "of ACKs and NACKs")

struct UetConfig {
  WEFT_OPTIONS(UetConfig, WEFT_UET_OPTIONS)
};

constexpr bool has_pdcs(UetService service) {
  return service == UetService::kRud || service == UetService::kRod;
}

// The only one that goes with the service.
constexpr Retransmission retransmission_of(UetService service) {
  return service == UetService::kRod ? Retransmission::kGoBackN : Retransmission::kSelectiveRepeat;
}

// Throws std::invalid_argument naming the first parameter that is out of range, or an option of RC that does
// not go with UET.
void check(const UetConfig& config, const RcConfig& common);

namespace uet {

// Packets that an initiator may have outstanding.
constexpr uint64_t kMaxOutstanding = 1u << 14;
static_assert(kMaxOutstanding / kMprUnitPsns <= 0xFF);

// A target gives up a PDC over which it has heard nothing for so long: as long as an initiator repeats what
// nobody answers, twice, because its timeouts follow round trips that the target does not know, and as long
// as one has nothing to do. Assumed: docs/uet.md.
TimePs target_silence_ps(const RcConfig& common, const UetConfig& config);

// Of its packets that carry messages.
constexpr Type request_type(const UetConfig& config) {
  if (config.service == UetService::kRod) return config.receiver_credits ? kRodCcRequest : kRodRequest;
  return config.receiver_credits ? kRudCcRequest : kRudRequest;
}

// Of its packets with data of READs, which need no credit.
constexpr Type response_type(const UetConfig& config) {
  return config.service == UetService::kRod ? kRodRequest : kRudRequest;
}

// Frame of a data packet with a full payload, from Ethernet on.
size_t full_frame_bytes(const RcConfig& common, const UetConfig& config);
// With so much payload.
size_t data_frame_bytes(const RcConfig& common, const UetConfig& config, uint64_t payload_bytes);

}  // namespace uet
}  // namespace weft

// Parameters of an MRC queue pair, beyond those that it shares with RC.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hosts/mrc/ev_routes.hpp"
#include "hosts/options.hpp"
#include "hosts/rc_config.hpp"
#include "packets/mrc_formats.hpp"
#include "time/time.hpp"

namespace weft {
namespace mrc {

// Packets that a sender may have outstanding: a SACK names the one that it answers in 15 bits.
constexpr uint32_t kMaxOutstanding = 1u << 14;
static_assert(kMaxOutstanding / kMprUnitPsns <= 0xFF);
// Bits of ev_event_mask, as the controller's interface of MRC has them (mrc_ctl.h).
constexpr uint8_t kEventGood = 1;
constexpr uint8_t kEventAssumedBad = 2;

}  // namespace mrc

// Options of an MRC queue pair. Python's keyword arguments have these names.
#define WEFT_MRC_OPTIONS(OPTION)                                                                             \
  OPTION(uint32_t, ev_count, 128, "entropy values that packets take in turn, over all planes")               \
  OPTION(uint32_t, ev_backups, 32, "entropy values in reserve for those whose path fails")                   \
  OPTION(TimePs, probe_interval_ps, 50 * kPsPerUs,                                                           \
         "between probes of an entropy value whose path is taken for dead")                                  \
  OPTION(uint32_t, ev_min_active, 0, "entropy values that stay active even if their paths fail")             \
  OPTION(uint64_t, ev_profile_id, 0, "of the EV profile that the entropy values are of, named in EV events") \
  OPTION(uint8_t, ev_event_mask, 0,                                                                          \
         "states whose beginning is an EV event: 1 (good) and 2 (assumed bad), or their sum")                \
  OPTION(uint32_t, max_wimm, mrc::kMaxOutstanding,                                                           \
         "WRITEs with immediate under way at once; further ones, and what follows them, wait")               \
  OPTION(uint32_t, max_wimm_dest, mrc::kMaxOutstanding,                                                      \
         "of the peer: one that has more under way fails the connection")                                    \
  OPTION(uint32_t, mpr, mrc::kMaxOutstanding / mrc::kMprUnitPsns,                                            \
         "packets under way at once, in units of 128")                                                       \
  OPTION(uint32_t, mpr_dest, mrc::kMaxOutstanding / mrc::kMprUnitPsns,                                       \
         "of the peer: packets further ahead of the first that is missing are refused")                      \
  OPTION(uint8_t, data_dscp, mrc::kDscpTrimmable, "of data that is sent for the first time, of probes")      \
  OPTION(uint8_t, retransmission_dscp, mrc::kDscpTrimmableRetransmission, "of data that is sent again")      \
  OPTION(uint8_t, control_dscp, mrc::kDscpControl, "of SACKs, NACKs and acknowledgements")

// How a queue pair's packets leave one port of its NIC and reach the peer.
struct MrcPath {
  roce::MacAddress source_mac{};
  roce::MacAddress destination_mac{};
  roce::IpAddress source_ip;
  roce::IpAddress destination_ip;
};

struct MrcConfig {
  std::vector<MrcPath> more_paths;  // of the planes after the first, which RcConfig has
  uint64_t ev_seed = 0;             // draws the entropy values
  // Of the first plane's port, where EVs name paths; null: EVs are drawn, and switches hash them.
  std::shared_ptr<mrc::EvRoutes> routes;

  bool encapsulates() const { return routes != nullptr && routes->encapsulates(); }

  WEFT_OPTIONS(MrcConfig, WEFT_MRC_OPTIONS)
};

// Throws std::invalid_argument naming the first parameter that is out of range, or an option of RC that does
// not go with MRC.
void check(const MrcConfig& config, const RcConfig& common);

// Seed of a queue pair's entropy values: those of two queue pairs of a host have nothing in common.
uint64_t mrc_seed(uint64_t entropy_seed, uint32_t queue_pair, uint32_t remote_queue_pair);

namespace mrc {

roce::RoceHeaders headers_of(const MrcPath& path);
// Addresses of what goes to the peer over each plane, with the peer's queue pair number.
std::vector<roce::RoceHeaders> headers_by_plane(const RcConfig& common, const MrcConfig& config);
// Frame of a data packet with a full payload, from Ethernet to iCRC.
size_t full_frame_bytes(const RcConfig& common, bool encapsulated);

}  // namespace mrc
}  // namespace weft

// What queue pairs of UET have alike, whichever their service.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hosts/code_points.hpp"
#include "hosts/uet/pdc_table.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "hosts/writing_queue_pair.hpp"
#include "packets/uet_frame.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

class ServiceQueuePair : public WritingQueuePair {
 public:
  ~ServiceQueuePair() override { pdcs_->remove(config_.queue_pair, this); }

  // Its data carry no INT.
  void count_hops(std::shared_ptr<HopLatencies>, int32_t, int32_t) override {}
  const std::optional<roce::IntStack>& last_telemetry() const override { return no_telemetry_; }
  void reset_counters() override {
    WritingQueuePair::reset_counters();
    uet_counters_ = UetCounters();
  }
  const UetConfig& uet_config() const { return uet_config_; }
  const UetCounters& uet_counters() const { return uet_counters_; }

 protected:
  // `pdcs` are the NIC's; `path_choice` may be null: one path. Throws std::invalid_argument as check() does,
  // and with `refusal` unless it is a queue pair of the configured service.
  ServiceQueuePair(const RcConfig& common, const UetConfig& config, bool is_its_service, const char* refusal,
                   std::shared_ptr<PdcTable> pdcs, std::shared_ptr<CongestionControl> congestion_control,
                   std::shared_ptr<PathChoice> path_choice)
      : WritingQueuePair(checked(common, config, is_its_service, refusal), std::move(congestion_control)),
        uet_config_(in_class_of(common, config)),
        pdcs_(std::move(pdcs)),
        path_choice_(std::move(path_choice)) {
    pdcs_->add(config_.queue_pair, this);
  }

  // Whether a packet is of UET, and from the peer. Others are counted.
  bool is_from_peer(const roce::ParsedPacket& packet) {
    if (packet.bth.opcode != kNoOpcode) {  // a packet of RoCEv2 with our number
      ++counters_.unexpected_opcode;
      return false;
    }
    if (packet.source_ip == config_.destination_ip) return true;
    ++counters_.wrong_source;
    return false;
  }

  // A frame of the service without a payload, whose first header is `pds`.
  template <class Pds>
  std::vector<uint8_t> frame_without_payload(Pds pds, uint8_t opcode) const {
    roce::RoceHeaders headers = headers_to_peer(config_);
    headers.dscp = uet_config_.data_dscp;
    std::vector<uint8_t> frame(frame_bytes<Pds, Standard>(headers.source_ip.is_ipv6, 0));
    pds.next_header = kRequestStandard;
    write_frame(headers, Body(), frame.data(), pds, Standard{.opcode = opcode});
    return frame;
  }

  UetConfig uet_config_;
  UetCounters uet_counters_;
  std::shared_ptr<PdcTable> pdcs_;
  std::shared_ptr<PathChoice> path_choice_;

 private:
  static const RcConfig& checked(const RcConfig& common, const UetConfig& config, bool is_its_service,
                                 const char* refusal) {
    if (!is_its_service) throw std::invalid_argument(refusal);
    check(config, common);
    return common;
  }

  std::optional<roce::IntStack> no_telemetry_;
};

}  // namespace weft::uet

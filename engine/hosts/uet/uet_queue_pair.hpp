// A queue pair of Ultra Ethernet Transport (UET): WRITEs and SENDs, with or without immediate, and READs over
// packet delivery contexts (PDCs) that it opens when it has something to send and closes when it has not.
// Pure state: no clock, no I/O. Source: Ultra Ethernet Specification 1.0.1, as docs/spec/uet.md and
// docs/uet.md describe it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hosts/uet/initiator.hpp"
#include "hosts/uet/service_queue_pair.hpp"
#include "hosts/uet/target.hpp"

namespace weft {

class UetQueuePair : public uet::ServiceQueuePair, private uet::CreditOwner {
 public:
  // As RcQueuePair's; `pdcs` are the NIC's and `pacer` its port's, null unless config.receiver_credits.
  // Throws std::invalid_argument as check() does.
  UetQueuePair(const RcConfig& common, const UetConfig& config, PacketPool& pool,
               const MemoryRegistry& memory, std::shared_ptr<uet::PdcTable> pdcs,
               std::shared_ptr<uet::CreditPacer> pacer, std::shared_ptr<CongestionControl> congestion_control,
               std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler);

  void post(TimePs now, RcRequest request) override;
  void post_receive(TimePs now, PostedReceive receive) override {
    target_.post_receive(now, std::move(receive));
  }
  std::vector<RcRequest> withdraw(TimePs now) override;
  uint64_t completed_requests() const override { return initiator_.messages().completed(); }
  size_t outstanding_requests() const override { return initiator_.messages().outstanding(); }
  void flush(TimePs now) override;
  void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) override;
  std::vector<uint8_t> data_frame() const override {
    return frame_without_payload(uet::Request(), uet::kWrite);
  }
  CompletionStatus error() const override { return initiator_.error(); }
  CompletionStatus responder_error() const override { return target_.error(); }

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull_control(TimePs now) override;
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override {
    return response_pulled_ ? target_.last_pulled() : initiator_.last_pulled();
  }
  bool may_have_control() const override { return target_.has_answer() || initiator_.has_answer(); }
  bool may_have_data() const override { return initiator_.may_have_data() || target_.may_have_data(); }
  TimePs next_deadline() const override {
    return std::min({initiator_.next_deadline(), target_.next_deadline(), join_ps_});
  }
  void on_deadline(TimePs now) override;
  void fetch(PrefetchStep step) const override;
  void set_recovery_times(RecoveryTimes* times) override { initiator_.set_recovery_times(times); }

  uet::PdcState initiator_state() const { return initiator_.pdc_state(); }
  bool has_target_pdc() const { return target_.has_pdc(); }

 private:
  void on_credit_due() override { wake(); }
  void on_control(TimePs now, const roce::ParsedPacket& packet);
  PacketPtr pull_request(TimePs now);
  PacketPtr pull_response(TimePs now);
  void join_errors(TimePs now);

  std::shared_ptr<uet::CreditPacer> pacer_;
  uet::Initiator initiator_;
  uet::Target target_;
  TimePs join_ps_ = kNever;       // when one half is to hear of the other's error
  bool response_pulled_ = false;  // what was pulled last; the other goes first then
};

}  // namespace weft

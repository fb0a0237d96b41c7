// A queue pair of Ultra Ethernet Transport with service RUDI: WRITEs without immediate and READs, whose
// packets arrive in any order and maybe more than once. It has no connection, and its target no state. Pure
// state: no clock, no I/O. Source: Ultra Ethernet Specification 1.0.1, as docs/spec/uet.md and docs/uet.md
// describe it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hosts/uet/rudi_initiator.hpp"
#include "hosts/uet/rudi_target.hpp"
#include "hosts/uet/service_queue_pair.hpp"

namespace weft {

class RudiQueuePair : public uet::ServiceQueuePair {
 public:
  // As UetQueuePair's.
  RudiQueuePair(const RcConfig& common, const UetConfig& config, PacketPool& pool,
                const MemoryRegistry& memory, std::shared_ptr<uet::PdcTable> pdcs,
                std::shared_ptr<CongestionControl> congestion_control,
                std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler);

  void post(TimePs now, RcRequest request) override;
  // Throws std::invalid_argument: nothing that it carries takes a receive.
  void post_receive(TimePs now, PostedReceive receive) override;
  std::vector<RcRequest> withdraw(TimePs now) override;
  uint64_t completed_requests() const override { return initiator_.messages().completed(); }
  size_t outstanding_requests() const override { return initiator_.messages().outstanding(); }
  void flush(TimePs now) override;
  void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) override;
  std::vector<uint8_t> data_frame() const override { return frame_without_payload(uet::Rudi(), uet::kWrite); }
  CompletionStatus error() const override { return initiator_.error(); }
  // A target remembers no error.
  CompletionStatus responder_error() const override { return CompletionStatus::kSuccess; }

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull_control(TimePs /*now*/) override { return target_.pull_control(); }
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override {
    return response_pulled_ ? target_.last_pulled() : initiator_.last_pulled();
  }
  bool may_have_control() const override { return target_.has_answer(); }
  bool may_have_data() const override { return target_.has_data() || initiator_.may_have_data(); }
  TimePs next_deadline() const override { return initiator_.next_deadline(); }
  void on_deadline(TimePs now) override { initiator_.on_deadline(now); }
  void fetch(PrefetchStep step) const override;
  void set_recovery_times(RecoveryTimes* times) override { initiator_.set_recovery_times(times); }

 private:
  uet::RudiInitiator initiator_;
  uet::RudiTarget target_;
  bool response_pulled_ = false;  // by the last pull()
};

}  // namespace weft

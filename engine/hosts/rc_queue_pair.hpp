// A reliable-connection (RC) queue pair: RDMA WRITE and SEND, each with or without immediate,
// acknowledgements, go-back-N and retransmission timeouts, receiver-not-ready, CNP and INT echo. Pure state:
// no clock, no I/O. Source: InfiniBand Architecture Specification volume 1, section 9.7; annex A17 (RoCEv2).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "hosts/memory_region.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/rc_requester.hpp"
#include "hosts/rc_responder.hpp"
#include "hosts/writing_queue_pair.hpp"
#include "memory/prefetch_step.hpp"

namespace weft {

class RcQueuePair : public WritingQueuePair {
 public:
  // `pool`, `memory` and `handler` outlive the queue pair; `handler` may be null, as may `path_choice`: then
  // all packets have config.source_udp_port. With `shared_receives` it takes its receives from there, and has
  // none of its own. Throws std::invalid_argument for parameters out of range (see check(RcConfig)).
  RcQueuePair(const RcConfig& config, PacketPool& pool, const MemoryRegistry& memory,
              std::shared_ptr<CongestionControl> congestion_control, std::shared_ptr<PathChoice> path_choice,
              CompletionHandler* handler, std::shared_ptr<SharedReceives> shared_receives = nullptr);

  // What the sending half alone needs to know, for a queue pair that has received before it may send (the
  // transition from RTR to RTS). Throws std::logic_error once something has been posted,
  // std::invalid_argument for parameters out of range.
  struct Sending {
    uint32_t initial_psn = 0;
    TimePs retransmission_timeout_ps = 0;
    uint32_t retry_limit = 0;
    uint32_t rnr_retry_limit = 0;
    uint32_t max_reads = 0;  // under way; 0: as many as it answers
  };
  void begin_sending(const Sending& sending);

  // A READ must not be too long for the PSNs.
  void post(TimePs now, RcRequest request) override {
    requester_.post(now, std::move(request));
    wake();
  }
  std::vector<RcRequest> withdraw(TimePs now) override;
  uint64_t completed_requests() const override { return requester_.completed_requests(); }
  void post_receive(TimePs now, PostedReceive receive) override;

  void flush(TimePs now) override;

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  std::optional<FarEnd> notified_for() const override {
    return FarEnd{config_.destination_ip, config_.remote_queue_pair};
  }
  void on_switch_notification(TimePs now, const switch_notification::Header& header) override;
  PacketPtr pull_control(TimePs now) override;
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override {
    return response_pulled_ ? responder_.reads()->last_pulled() : requester_.last_pulled();
  }
  bool may_have_control() const override { return responder_.has_answer() || requester_.has_answer(); }
  bool may_have_data() const override { return requester_.may_have_data() || may_have_responses(); }
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;
  void fetch(PrefetchStep step) const override;

  void set_recovery_times(RecoveryTimes* times) override { requester_.set_recovery_times(times); }

  void forget_marks() override { responder_.forget_marks(); }

  void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) override {
    ends_ = ends;
    requester_.observe(probe, ends, messages, telemetry);
  }
  void count_hops(std::shared_ptr<HopLatencies> latencies, int32_t peer, int32_t plane) override {
    requester_.count_hops(std::move(latencies), peer, plane);
  }
  const std::optional<roce::IntStack>& last_telemetry() const override { return requester_.last_telemetry(); }
  std::vector<uint8_t> data_frame() const override;
  size_t outstanding_requests() const override { return requester_.outstanding_requests(); }
  CompletionStatus error() const override { return requester_.error(); }
  CompletionStatus responder_error() const override { return responder_.error(); }

 private:
  bool may_have_responses() const {
    return responder_.reads() != nullptr && responder_.reads()->may_have_data();
  }
  PacketPtr pull_request(TimePs now);
  PacketPtr pull_response(TimePs now);
  void follow_rate(TimePs now);
  void join_errors(TimePs now);

  std::shared_ptr<PathChoice> path_choice_;
  RcRequester requester_;
  RcResponder responder_;
  bool response_pulled_ = false;  // what was pulled last; the other goes first then
};

}  // namespace weft

// A queue pair of Ultra Ethernet Transport with service UUD: SENDs of one packet, which may be lost and are
// not answered. It neither repeats nor limits what it sends. Pure state: no clock, no I/O. Source: Ultra
// Ethernet Specification 1.0.1, as docs/spec/uet.md and docs/uet.md describe it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hosts/memory_region.hpp"
#include "hosts/posted_receives.hpp"
#include "hosts/uet/messages.hpp"
#include "hosts/uet/service_queue_pair.hpp"

namespace weft {

class UudQueuePair : public uet::ServiceQueuePair {
 public:
  // As UetQueuePair's.
  UudQueuePair(const RcConfig& common, const UetConfig& config, PacketPool& pool,
               std::shared_ptr<uet::PdcTable> pdcs, std::shared_ptr<CongestionControl> congestion_control,
               std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler);

  // A SEND completes when its packet has left. Throws std::invalid_argument for other requests, and for a
  // SEND that is longer than a packet.
  void post(TimePs now, RcRequest request) override;
  void post_receive(TimePs now, PostedReceive receive) override;
  std::vector<RcRequest> withdraw(TimePs now) override;
  uint64_t completed_requests() const override { return messages_.completed(); }
  size_t outstanding_requests() const override { return messages_.outstanding(); }
  void flush(TimePs now) override;
  void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) override;
  std::vector<uint8_t> data_frame() const override {
    return frame_without_payload(uet::Uud(), uet::kDatagramSend);
  }
  CompletionStatus error() const override { return error_; }
  CompletionStatus responder_error() const override { return error_; }

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override { return last_pulled_; }
  bool may_have_control() const override { return false; }
  bool may_have_data() const override { return has_next(); }
  // Completions wait for it, because their handlers may post.
  TimePs next_deadline() const override { return due_ps_; }
  void on_deadline(TimePs now) override;

 private:
  bool has_next() const {
    return error_ == CompletionStatus::kSuccess && next_sequence_ != messages_.end_sequence();
  }
  void on_datagram(TimePs now, const roce::ParsedPacket& packet);
  void fail();
  void deliver_completions(TimePs now) {
    messages_.deliver(now, [this] { return next_sequence_; }, error_);
  }

  PacketPool& pool_;
  roce::RoceHeaders headers_;
  uet::Messages messages_;
  uint64_t next_sequence_ = 0;
  TimePs due_ps_ = kNever;  // completions of what has left
  PostedReceives receives_;
  PulledPacket last_pulled_;
  CompletionStatus error_ = CompletionStatus::kSuccess;
};

}  // namespace weft

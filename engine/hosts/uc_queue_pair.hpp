// An unreliable-connection (UC) queue pair: WRITE and SEND, each with or without immediate. Nothing is
// acknowledged or sent again: a message of which a packet is lost is dropped without a word, and counted.
// CNPs are as RC's, so that the rate of its congestion control applies. Pure state: no clock, no I/O. Source:
// InfiniBand Architecture Specification volume 1, section 9.8.2; annex A17 (RoCEv2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/congestion_notifier.hpp"
#include "hosts/memory_region.hpp"
#include "hosts/message_shape.hpp"
#include "hosts/posted_receives.hpp"
#include "hosts/posted_requests.hpp"
#include "hosts/request_completions.hpp"
#include "hosts/uc_counters.hpp"
#include "hosts/writing_queue_pair.hpp"
#include "packets/header_template.hpp"
#include "packets/psn.hpp"
#include "paths/path_choice.hpp"

namespace weft {

class UcQueuePair : public WritingQueuePair {
 public:
  // As RcQueuePair's. Its window is not asked, because nothing says what has arrived: only the rate is.
  // Throws std::invalid_argument for options that need answers: telemetry, line_format, end_to_end_credits.
  UcQueuePair(const RcConfig& config, PacketPool& pool, const MemoryRegistry& memory,
              std::shared_ptr<CongestionControl> congestion_control, std::shared_ptr<PathChoice> path_choice,
              CompletionHandler* handler, std::shared_ptr<SharedReceives> shared_receives = nullptr);

  // The PSN of the first packet, for a queue pair that has received before it may send. Throws
  // std::logic_error once something has been posted, std::invalid_argument for more than 24 bits.
  void begin_sending(uint32_t initial_psn);

  // A request completes when its last packet has left. Throws std::invalid_argument for READs and atomics.
  void post(TimePs now, RcRequest request) override;
  void post_receive(TimePs now, PostedReceive receive) override;
  std::vector<RcRequest> withdraw(TimePs now) override;
  uint64_t completed_requests() const override { return requests_.completed(); }
  size_t outstanding_requests() const override { return requests_.size(); }
  void flush(TimePs now) override;
  void forget_marks() override { notifier_.forget(); }
  void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) override;
  // Its data carry no INT.
  void count_hops(std::shared_ptr<HopLatencies>, int32_t, int32_t) override {}
  const std::optional<roce::IntStack>& last_telemetry() const override { return no_telemetry_; }
  std::vector<uint8_t> data_frame() const override;
  CompletionStatus error() const override { return error_; }
  CompletionStatus responder_error() const override { return error_; }
  void reset_counters() override;
  const UcCounters& uc_counters() const { return uc_counters_; }

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull_control(TimePs now) override;
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override { return last_pulled_; }
  bool may_have_control() const override { return notifier_.has_cnp(); }
  bool may_have_data() const override { return has_next(); }
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;

 private:
  struct Outstanding : RcRequest {
    uint64_t first_sequence = 0;
    uint64_t end_sequence = 0;           // one past its last packet
    uint64_t retransmitted_packets = 0;  // none
  };
  using Message = MessageShape::Message;

  bool has_next() const { return error_ == CompletionStatus::kSuccess && next_sequence_ != end_sequence_; }
  void set_headers(TimePs now, const Outstanding& request);
  PacketPtr build(const Outstanding& request, uint64_t offset_bytes, size_t payload_bytes);
  void follow_rate();
  void deliver_completions(TimePs now);
  void fail(TimePs now, CompletionStatus status, CompletionStatus first_receive);

  void take(TimePs now, const roce::ParsedPacket& packet);
  bool follows(const MessageShape& shape, uint32_t psn);
  // Both return whether the message goes on; otherwise they have counted why it does not.
  bool begin(const MessageShape& shape, const roce::ParsedPacket& packet);
  bool place(TimePs now, const MessageShape& shape, const roce::ParsedPacket& packet);
  bool has_right_size(const MessageShape& shape, const roce::ParsedPacket& packet) const;
  bool needs_receive(const MessageShape& shape) const;
  void break_message();
  bool drop(uint64_t& counter);

  PacketPool& pool_;
  const MemoryRegistry& memory_;
  std::shared_ptr<PathChoice> path_choice_;
  UcCounters uc_counters_;
  CompletionStatus error_ = CompletionStatus::kSuccess;

  roce::RoceHeaders headers_;  // of the next data packet
  roce::HeaderTemplate template_;
  roce::RoceHeaders control_headers_;
  roce::HeaderTemplate control_template_;
  std::vector<uint8_t> payload_;  // of the packet that is built, from foreign memory
  PsnMap psn_map_;
  RequestCompletions completions_;
  PostedRequests<Outstanding> requests_;
  uint64_t end_sequence_ = 0;      // one past the last packet of the last request
  uint64_t next_sequence_ = 0;     // next packet to send
  TimePs due_ps_ = kNever;         // completions of what has left
  TimePs wait_until_ps_ = kNever;  // what the last pull() was refused for
  PulledPacket last_pulled_;

  CongestionNotifier notifier_;
  PostedReceives receives_;
  uint32_t expected_psn_;
  Message message_ = Message::kNone;  // in progress
  bool is_dropping_ = false;          // what comes until a message begins
  uint64_t message_bytes_ = 0;        // received so far
  uint64_t message_limit_bytes_ = 0;  // RETH length of a WRITE, capacity of the receive for a SEND
  uint64_t write_address_ = 0;
  uint32_t write_rkey_ = 0;
  std::optional<roce::IntStack> no_telemetry_;
};

}  // namespace weft

// The sending half of an RC queue pair: requests in, data packets out, acknowledgements in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "congestion/congestion_control.hpp"
#include "hosts/arrival_window.hpp"
#include "hosts/outstanding_reads.hpp"
#include "hosts/posted_requests.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/recovery_times.hpp"
#include "hosts/request_completions.hpp"
#include "hosts/send_gate.hpp"
#include "hosts/sending_half.hpp"
#include "hosts/sent_stream.hpp"
#include "hosts/switch_notification.hpp"
#include "memory/ring_buffer.hpp"
#include "observe/hop_latencies.hpp"
#include "observe/probe.hpp"
#include "packets/header_template.hpp"
#include "packets/psn.hpp"
#include "paths/path_choice.hpp"

namespace weft {

class RcRequester : public SendingHalf<RcRequester> {
 public:
  RcRequester(const RcConfig& config, RcCounters& counters, PacketPool& pool, SendGate& gate,
              PathChoice* path_choice, CompletionHandler* handler);

  using Request = RcRequest;

  // The PSN of the first packet, if it is not the configuration's at construction. Before anything is posted.
  void begin(uint32_t initial_psn) { psn_map_ = PsnMap(initial_psn); }
  bool has_begun() const { return end_sequence_ > 0; }
  void post(TimePs now, Request request);
  // Throws UnreadableMemory if the packet's payload is not there: on_unreadable() is to follow.
  PacketPtr pull(TimePs now);
  void on_unreadable(TimePs now);
  bool may_have_data() const;
  PulledPacket last_pulled() const { return last_pulled_; }
  void on_acknowledgement(TimePs now, const roce::ParsedPacket& packet);
  void on_read_response(TimePs now, const roce::ParsedPacket& packet);
  // The next answer to responses of READs, null if none is due.
  PacketPtr pull_control() { return has_answer() ? reads_->pull_answer() : nullptr; }
  bool has_answer() const { return reads_ != nullptr && reads_->has_answer(); }
  void on_congestion_notification(TimePs now);
  void on_switch_notification(TimePs now, const switch_notification::Header& header);
  // An acknowledgement may have brought an INT stack back.
  void note_telemetry(TimePs now, const roce::ParsedPacket& packet);
  // The responses of READs have changed what pacing allows.
  void renew_wait(TimePs now);
  TimePs next_deadline() const;
  void on_deadline(TimePs now);
  // Requests other than READs that have completed as successful.
  uint64_t completed_requests() const { return requests_.completed(); }

  // Notes there when a packet that was sent again is acknowledged; null: nowhere.
  void set_recovery_times(RecoveryTimes* times) { sent_.set_recovery_times(times); }

  // Every message that completes is recorded, and every INT stack that comes back if `telemetry`.
  void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry);
  // Has every INT stack that comes back counted there, as of packets to a peer over a plane.
  void count_hops(std::shared_ptr<HopLatencies> latencies, int32_t peer, int32_t plane);

  const std::optional<roce::IntStack>& last_telemetry() const { return last_telemetry_; }
  size_t outstanding_requests() const { return requests_.size(); }

  // Prefetches what is remembered of the packets that may be answered next, and of those that are sent next.
  void fetch() const { sent_.fetch(next_sequence_); }

 private:
  friend SendingHalf<RcRequester>;

  struct Outstanding : Request {
    uint64_t first_sequence = 0;
    uint64_t end_sequence = 0;  // one past its last packet
    uint64_t first_psn = 0;     // counted from the first PSN
    uint64_t number = 0;        // of the message, from 1
    uint64_t wire_bytes = 0;    // its length, with flags
    uint64_t psn_of(uint64_t sequence) const { return first_psn + (sequence - first_sequence); }
    uint64_t retransmitted_packets = 0;
  };

  std::optional<uint64_t> sequence_to_send();
  Outstanding& request_of(uint64_t sequence) { return requests_.request_of(sequence, next_sequence_); }
  size_t packet_payload_bytes(const Outstanding& request, uint64_t sequence) const;
  void set_packet_headers(const Outstanding& request, uint64_t sequence, uint32_t packets,
                          size_t payload_bytes);
  void set_read_headers(const Request& request, uint64_t psn, uint64_t offset_bytes);
  void set_path(TimePs now, uint64_t sequence, bool retransmission);
  void mark_end_of_flow(Packet& packet, uint64_t sequence) const;
  bool may_send_next();
  bool needs_credit(const Outstanding& request) const;
  bool has_credit(const Outstanding& request) const;
  void note_credits(const roce::Aeth& aeth);
  PacketPtr pull_repeat(TimePs now);
  PacketPtr build(const Outstanding& request, uint64_t sequence, size_t payload_bytes);
  PacketPtr build_without_data(const Outstanding& request, uint64_t offset, size_t payload_bytes);
  // Where the packet's data begin in the message's; for nothing but padding, at the last byte.
  uint64_t packet_data_offset(const Outstanding& request, uint64_t sequence) const;
  bool should_request_ack(const Outstanding& request, uint64_t sequence, uint32_t packets,
                          uint64_t frame_bytes) const;
  void record_sent(TimePs now, Outstanding& request, uint64_t sequence, uint16_t frame_bytes,
                   TimePs later_ps);

  // Segments (rc_segments.cpp).
  bool has_segments(const Outstanding& request) const;
  uint64_t segment_limit() const;
  // By how much the window is larger for a message of segments.
  uint64_t more_window_bytes(const Outstanding& request) const;
  uint32_t packets_to_send(const Outstanding& request, uint64_t sequence) const;
  void record_segment(TimePs now, Outstanding& request, uint64_t sequence, uint32_t packets,
                      uint16_t frame_bytes, size_t once_bytes);
  // Of a frame's bytes, those of headers that only one packet of the message has.
  size_t once_bytes() const;

  int64_t sequence_of(uint32_t psn) const;
  // One past the newest packet whose request is done.
  uint64_t done_end() const {
    return reads_ == nullptr ? sent_.accepted() : reads_->done_end(sent_.accepted());
  }
  bool is_waiting() const {
    return next_sequence_ != sent_.accepted() || (reads_ != nullptr && reads_->is_waiting());
  }
  std::optional<uint64_t> answered_sequence(const roce::ParsedPacket& packet, uint64_t end_sequence) const;
  void acknowledge(TimePs now, uint64_t end_sequence, std::optional<uint64_t> answered,
                   const roce::ParsedPacket& packet);
  void follow_rate(TimePs now);
  void detect_losses(TimePs now);
  void go_back(TimePs now);
  void on_nak(TimePs now, uint64_t sequence, uint8_t syndrome);
  void on_rnr_nak(TimePs now, uint8_t timer_code);
  void on_timeout(TimePs now);
  uint64_t oldest_frame_bytes();
  TimePs retransmission_timeout_ps() const;
  TimePs timeout_deadline() const;
  void fail(CompletionStatus status);
  std::vector<Request> take_back();
  void deliver_completions(TimePs now);

  const RcConfig& config_;
  RcCounters& counters_;
  PacketPool& pool_;
  SendGate& gate_;
  RequestCompletions completions_;

  roce::RoceHeaders headers_;  // of the next data packet
  roce::HeaderTemplate template_;
  std::vector<uint8_t> payload_;  // of the packet that is built, where data do not have it as it is
  PsnMap psn_map_;
  PostedRequests<Outstanding> requests_;
  uint64_t end_sequence_ = 0;   // one past the last packet of the last request
  uint64_t end_psn_ = 0;        // one past the last PSN of the last request
  uint64_t next_sequence_ = 0;  // next packet to send
  SentStream sent_;
  std::unique_ptr<OutstandingReads> reads_;  // null before the first

  PathChoice* path_choice_;  // null: one path
  bool selective_repeat_;
  bool marks_ends_of_flows_;
  uint64_t flow_first_sequence_ = 0;  // first packet since there was nothing to send

  TimePs progress_ps_ = 0;  // when the timeout started to count
  uint32_t retries_ = 0;
  uint32_t rnr_retries_ = 0;
  TimePs rnr_until_ps_ = 0;
  TimePs wait_until_ps_ = kNever;  // what the last pull() was refused for, if for time alone
  size_t largest_frame_bytes_ = 0;
  size_t smallest_full_frame_bytes_ = 0;  // with as much payload as fits
  PulledPacket last_pulled_;
  uint64_t posted_messages_ = 0;
  uint64_t credit_limit_ = 0;  // number of the last message that the peer has a receive for
  CompletionStatus refusal_ = CompletionStatus::kSuccess;  // the error, once READs before are done
  uint64_t unplaced_ = UINT64_MAX;                         // sequence of a READ whose target is not there
  std::optional<roce::IntStack> last_telemetry_;
  Probe* telemetry_probe_ = nullptr;
  ConnectionEnds ends_;
  std::shared_ptr<HopLatencies> hop_latencies_;
  int32_t hops_peer_ = -1;
  int32_t hops_plane_ = -1;
};

}  // namespace weft

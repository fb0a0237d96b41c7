// The worker's side of in-network aggregation: a queue pair that streams contributions to the first switch of
// a job's tree and takes results from the job's group (docs/spec/aggregation.md).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "hosts/aggregation_request.hpp"
#include "hosts/aggregation_timeout.hpp"
#include "hosts/aggregation_window.hpp"
#include "hosts/queue_pair.hpp"
#include "observe/statistics.hpp"
#include "packets/header_template.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"
#include "time/time.hpp"

namespace weft {

struct AggregationConfig {
  uint16_t job_id = 0;
  uint16_t epoch = 0;
  uint32_t q_key = 0;
  uint16_t rank = 0;         // among the children of the tree node the contributions go to
  uint32_t rank_count = 1;   // workers of the whole job, for the scaling of floats
  uint32_t worker_rank = 0;  // in the whole job
  // The tree's numbers of all workers, by their ranks in the job; empty if these are the ranks.
  std::vector<uint16_t> worker_numbers;
  uint16_t slot_count = 64;               // most messages in flight: one bandwidth-delay product or more
  uint16_t lane_count = 64;               // of a packet with data, as the switches' program has them
  uint8_t data_class = roce::kDataClass;  // in which contributions travel, below roce::kDataClasses
  // What the job is promised of the link, at which contributions leave, whole frames counted; marks do not
  // slow them down then. 0: nothing is promised, and the window alone holds them back.
  uint64_t rate_bps = 0;

  roce::MacAddress source_mac{};
  roce::MacAddress destination_mac{};
  roce::IpAddress source_ip;
  roce::IpAddress destination_ip;  // aggregation address of the tree node
  uint16_t source_udp_port = 0xC000;

  // Time without a result after which a contribution is sent again; doubles with every retry, at most
  // timeout_backoff_limit times. After retry_limit timeouts of one message the client fails.
  TimePs retransmission_timeout_ps = 0;
  uint32_t timeout_backoff_limit = 5;
  uint32_t retry_limit = 30;
  // Results come in the order of messages unless one was lost: a message is sent again, once, without waiting
  // for its timeout when the result of one this much later has arrived. 0 turns that off.
  uint32_t early_retransmit_distance = 16;
};

// Throws std::invalid_argument naming the first parameter that is out of range.
void check(const AggregationConfig& config);

#define WEFT_AGGREGATION_COUNTERS(STATISTIC)                                                  \
  STATISTIC(uint64_t, contributions_sent, "retransmissions included")                         \
  STATISTIC(uint64_t, retransmitted_packets, "contributions sent again")                      \
  STATISTIC(uint64_t, timeouts, "retransmission timeouts")                                    \
  STATISTIC(uint64_t, early_retransmissions, "because results of later messages had come")    \
  STATISTIC(uint64_t, repeated_messages, "sent in one more epoch, which a failure began")     \
  STATISTIC(uint64_t, results_accepted, "of this job, awaited")                               \
  STATISTIC(uint64_t, ce_marked_packets, "accepted results that a switch marked")             \
  STATISTIC(uint64_t, overflowed_messages, "accepted, with a sum that left its type's range") \
  STATISTIC(uint64_t, stale_results, "not accepted: of a round already finished")             \
  STATISTIC(uint64_t, foreign_results, "not accepted: of another job, or with a wrong Q_Key") \
  STATISTIC(uint64_t, wrong_epoch_results, "not accepted")                                    \
  STATISTIC(uint64_t, unexpected_results,                                                     \
            "not accepted: of a slot or round nothing was sent for, or not what was asked")   \
  STATISTIC(uint64_t, invalid_results, "not accepted: refused by the request")                \
  STATISTIC(uint64_t, unexpected_packets, "not a result of an aggregation at all")            \
  STATISTIC(uint64_t, dropped_in_error, "arrived after the client had failed")

struct AggregationCounters {
  WEFT_STATISTICS(AggregationCounters, WEFT_AGGREGATION_COUNTERS)
};

// Message m of the job's stream, counted from the epoch's first one, uses slot m mod slot_count in round m
// div slot_count; the stream goes on over all requests, so that every worker must post the same requests in
// the same order. Requests complete (CompletionKind::kAggregate) in order; the next one's messages follow
// into free slots before. In another epoch another client takes the stream over (aggregation_moves.cpp).
class AggregationClient : public QueuePair {
 public:
  // `pool` and `handler` outlive the client; `handler` may be null. Throws as check().
  AggregationClient(const AggregationConfig& config, PacketPool& pool, CompletionHandler* handler);

  // Adds a request to the stream. Its buffers stay alive, and the source unchanged, until the completion. On
  // a failed client it completes at once with kFlushed. Throws as AggregationRequest.
  void post(TimePs now, AggregationBuffers buffers, std::vector<AggregationPart> parts, DataType dtype,
            ReduceOperation operation, uint64_t work_id);

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull(TimePs now) override;
  // A reduction is one request of the host, however many messages the network makes of it.
  PulledPacket last_pulled() const override {
    return {.payload_bytes = 4u * headers_.aggregation->lane_count, .starts_message = false};
  }
  int data_class() const override { return config_.data_class; }
  bool goes_first() const override { return config_.rate_bps != 0; }
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;

  const AggregationConfig& config() const { return config_; }
  const AggregationCounters& counters() const { return counters_; }
  void reset_counters() { counters_ = AggregationCounters(); }
  size_t outstanding_requests() const { return requests_.size(); }
  uint32_t messages_in_flight() const { return in_flight_; }
  const AggregationWindow& window() const { return window_; }
  // kSuccess while the client works.
  CompletionStatus error() const { return error_; }

  // Numbers of the stream's first message without a result, and of those after the last sent and the last
  // posted.
  uint64_t first_unfinished() const;
  uint64_t end_of_sent() const { return next_message_; }
  uint64_t end_of_stream() const { return end_of_stream_; }
  // Goes on with the stream of another client, which is detached and has nothing any more afterwards. The
  // epoch begins with `first_message`, the first one that a worker of the job has no result of. What this
  // worker has sent from there on is sent again, and results that it has had already change nothing. Throws
  // std::invalid_argument if the other one has another number of slots, has failed, or cannot begin there.
  void take_over(AggregationClient& before, uint64_t first_message);

  // For a stream that something else than switches carries on; the client is detached. The lanes of the
  // messages of an operation in [first, end), in order. Throws std::invalid_argument if there is one that
  // cannot be composed.
  std::vector<int32_t> contributions(uint64_t first, uint64_t end, ReduceOperation operation,
                                     LaneType lane_type) const;
  // Takes results of the same messages in the same order. Throws std::invalid_argument if they are of another
  // number, or cannot be results.
  void take_results(uint64_t first, uint64_t end, ReduceOperation operation, LaneType lane_type,
                    const std::vector<int32_t>& lanes);
  // All results before `end` have been taken: completes the requests that they end.
  void skip_to(TimePs now, uint64_t end);

 private:
  struct Posted {
    AggregationRequest request;
    uint64_t first_message;  // number of its message 0 in the stream
    uint64_t remaining;      // messages without a result
    uint64_t work_id;
    TimePs posted_ps;
    uint64_t length_bytes;
  };
  struct Slot {
    bool busy = false;
    bool queued = false;  // stands in resend_
    uint64_t message = 0;
    uint32_t timeouts = 0;
    uint32_t transmissions = 0;
    TimePs sent_ps = 0;  // the first time
  };
  // What was sent, and may have to be sent in another epoch: a reduction in place overwrites its source.
  struct Sent {
    uint64_t message = UINT64_MAX;
    bool has_result = false;
    AggregationPurpose purpose;
    std::vector<uint8_t> payload;
  };
  // A timeout to come. Stale, and skipped, if the slot has moved on or sent again since.
  struct Timeout {
    TimePs deadline_ps;
    uint64_t message;
    uint32_t transmissions;
  };

  Slot& slot_of(uint64_t message) { return slots_[(message - first_message_) % config_.slot_count]; }
  const Slot& slot_of(uint64_t message) const {
    return slots_[(message - first_message_) % config_.slot_count];
  }
  // A worker has results of less than slot_count messages after the first one that another has none of, and
  // has sent at most slot_count more.
  Sent& sent_of(uint64_t message) { return sent_[message % sent_.size()]; }
  const Sent& sent_of(uint64_t message) const { return sent_[message % sent_.size()]; }
  bool was_sent(uint64_t message) const { return sent_of(message).message == message; }
  bool has_result(uint64_t message) const { return was_sent(message) && sent_of(message).has_result; }
  Posted& posted_of(uint64_t message);
  const Posted& posted_of(uint64_t message) const;
  uint16_t destination_of(const AggregationPurpose& purpose) const;
  bool gets_lanes(const AggregationPurpose& purpose) const;
  AggregationPurpose purpose_of(uint64_t message) const;
  bool classify(const roce::ParsedPacket& packet, uint64_t& message);
  bool take_result(uint64_t message, const int32_t* lanes, bool has_overflowed);
  bool can_send_next() const;
  bool must_wait(TimePs now);
  void pace_after(TimePs now, size_t frame_bytes);
  void compose(uint64_t message);
  PacketPtr send(TimePs now, uint64_t message);
  void queue_resend(uint64_t message);
  void resend_overtaken(uint64_t message);
  void finish(uint64_t message);
  void complete_front(TimePs now);
  void drop_stale_timeouts();
  bool is_stale(const Timeout& timeout) const;
  void fail(TimePs now, CompletionStatus status);
  void complete(const Posted& posted, CompletionStatus status, TimePs now);

  AggregationConfig config_;
  PacketPool& pool_;
  CompletionHandler* handler_;
  AggregationCounters counters_;
  CompletionStatus error_ = CompletionStatus::kSuccess;
  roce::RoceHeaders headers_;  // of the next contribution
  roce::HeaderTemplate template_;

  AggregationWindow window_;
  AggregationTimeout timeout_;
  std::vector<Slot> slots_;
  std::vector<Sent> sent_;  // by message modulo its size
  std::deque<Posted> requests_;
  uint64_t first_message_ = 0;   // of the epoch
  uint64_t end_of_stream_ = 0;   // message number after the last one posted
  uint64_t next_message_ = 0;    // next one to send for the first time
  uint64_t overtaken_from_ = 0;  // messages below have been looked at for an early retransmission
  uint32_t in_flight_ = 0;
  TimePs next_send_ps_ = -kNever;              // when the rate lets the next contribution leave
  TimePs paced_until_ps_ = kNever;             // the same while one waits for it
  std::deque<uint64_t> resend_;                // message numbers
  std::vector<std::deque<Timeout>> timeouts_;  // by doublings, each in order of deadline
};

}  // namespace weft

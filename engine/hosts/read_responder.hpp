// The side of an RC queue pair that READs and atomics are answered by: it remembers the newest ones, with the
// results of atomics, so that each is done once however often it comes. It sends the responses of READs
// within the window and the rate that they share with the queue pair's own requests.
//
// The requester recovers what is lost: a READ that comes again, from the PSN of the first missing response,
// sends this side back there (InfiniBand specification, section 9.7). With selective repeat, answers that
// name single responses let this side send what was overtaken by itself, as IRN's responder does.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "hosts/memory_region.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/send_gate.hpp"
#include "hosts/sent_stream.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/header_template.hpp"
#include "packets/psn.hpp"
#include "paths/path_choice.hpp"

namespace weft {

class ReadResponder {
 public:
  // `psn_map` is of the peer's requests. `path_choice` may be null: one path.
  ReadResponder(const RcConfig& config, RcCounters& counters, PacketPool& pool, const MemoryRegistry& memory,
                SendGate& gate, PathChoice* path_choice, const PsnMap& psn_map);

  // PSNs that this request takes.
  uint64_t packets_of(const roce::ParsedPacket& request) const;
  // Takes the next READ, or does the next atomic, whose first response has this PSN; `msn` counts it. Returns
  // kSyndromeAck, or the NAK that it earns.
  uint8_t accept(TimePs now, uint64_t psn, const roce::ParsedPacket& request, uint32_t msn);
  // The result of an atomic that is to be sent.
  struct Result {
    uint64_t psn = 0;
    uint64_t original = 0;
    uint32_t msn = 0;
  };
  bool has_result() const { return !results_.empty(); }
  Result next_result() { return results_.pop(); }
  // The READ or its rest, or the result, has been asked for again.
  void repeat(TimePs now, uint64_t psn, const roce::ParsedPacket& request);
  // The requester's answer to responses.
  void on_acknowledgement(TimePs now, const roce::ParsedPacket& packet);

  PacketPtr pull(TimePs now);
  PulledPacket last_pulled() const { return last_pulled_; }
  bool may_have_data() const;
  // Of the response whose memory has been deregistered meanwhile, or is foreign and not there, if there is
  // one: nothing more is sent. And the NAK that it earns.
  std::optional<uint64_t> failed_psn() const { return failed_psn_; }
  uint8_t failed_syndrome() const { return failed_syndrome_; }
  TimePs next_deadline() const { return std::min(wait_until_ps_, sent_.loss_deadline_ps()); }
  void on_deadline(TimePs now);
  // The rate may be another.
  void follow_rate(TimePs now);
  // Sends nothing any more.
  void stop();

 private:
  struct Read {
    uint64_t first_psn = 0;
    uint64_t packets = 0;
    uint64_t first_response = 0;  // in the sequence of all responses
    uint64_t address = 0;
    uint64_t length_bytes = 0;
    uint32_t rkey = 0;
    uint32_t msn = 0;
    bool as_length = false;
    uint8_t traffic_kind = 0;  // the request's
    bool is_atomic = false;
    uint64_t original = 0;  // what the atomic found
    uint64_t responses() const { return is_atomic ? 0 : packets; }
    uint64_t end_response() const { return first_response + responses(); }
  };

  uint8_t grant(const roce::ParsedPacket& request) const;
  // What the memory held; nullopt if it is foreign and not there.
  std::optional<uint64_t> do_atomic(const roce::ParsedPacket& request) const;
  bool make_room(TimePs now, const roce::ParsedPacket& request);
  const Read& read_of(uint64_t response) const;
  uint64_t responses_before(uint64_t psn) const;
  std::optional<uint64_t> response_to_send();
  size_t payload_bytes(const Read& read, uint64_t response) const;
  void set_headers(TimePs now, const Read& read, uint64_t response);
  PacketPtr build(const Read& read, uint64_t response, size_t payload_bytes);
  PacketPtr refuse(const Read& read, uint64_t response, uint8_t syndrome);
  void go_back(TimePs now, uint64_t response);
  void give_up_overdue(TimePs now);
  TimePs timeout_ps() const;
  void detect_losses(TimePs now);

  const RcConfig& config_;
  RcCounters& counters_;
  PacketPool& pool_;
  const MemoryRegistry& memory_;
  SendGate& gate_;
  PathChoice* path_choice_;
  const PsnMap& psn_map_;
  bool selective_repeat_;
  roce::RoceHeaders headers_;  // of the next response
  roce::HeaderTemplate template_;
  uint64_t largest_frame_bytes_ = 0;
  std::deque<Read> reads_;  // the newest ones, by PSN
  RingBuffer<Result> results_;
  uint64_t end_ = 0;           // one past the last response of the newest
  uint64_t next_ = 0;          // response to send
  uint64_t restarted_at_ = 0;  // the response that the newest repetition asked for
  SentStream sent_;
  TimePs wait_until_ps_ = kNever;  // what the last pull() was refused for, if for the rate alone
  PulledPacket last_pulled_;
  std::optional<uint64_t> failed_psn_;
  uint8_t failed_syndrome_ = roce::kSyndromeAck;
  std::vector<uint8_t> payload_;  // of the response that is built, from foreign memory
};

}  // namespace weft

// The READs and atomics that a requester has sent and whose results have not all come: which responses are
// missing, when to ask for them again, and the answers to those that came.
//
// The responses of a READ take a PSN each, its request has the first of them (InfiniBand specification,
// section 9.7). The requester numbers its own packets without gaps; what lies between the two is known
// here.
//
// A responder's congestion control needs to hear of its responses, which the specification leaves
// unacknowledged. They are answered with an opcode of the range for manufacturers, as IRN's read
// acknowledgements are (Mittal et al., SIGCOMM 2018): docs/spec/host-transports.md.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "hosts/rc_config.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/selective_answers.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/header_template.hpp"
#include "packets/psn.hpp"

namespace weft {

class OutstandingReads {
 public:
  OutstandingReads(const RcConfig& config, RcCounters& counters, PacketPool& pool, const PsnMap& psn_map);

  // From kInvalid on the response does not count. kUnplaced: the target is foreign memory that is not there.
  enum class Arrival : uint8_t { kNew, kDuplicate, kBehindGap, kInvalid, kUnplaced };
  struct Taken {
    Arrival arrival = Arrival::kInvalid;
    uint64_t sequence = 0;  // of the request
  };
  // A request for responses that are missing.
  struct Repeat {
    const RcRequest* request = nullptr;
    uint64_t sequence = 0;  // of the request
    uint64_t psn = 0;       // of the first response that is asked for
    uint64_t offset_bytes = 0;
    uint64_t length_bytes = 0;
  };

  // Whether the peer has resources for one more.
  bool has_room() const {
    return reads_.size() <
           (config_.max_reads_sent == 0 ? config_.max_outstanding_reads : config_.max_reads_sent);
  }
  // The request is about to be sent, as packet `sequence` of the requester. Nothing happens if it has been
  // before.
  void add(const RcRequest& request, uint64_t sequence, uint64_t first_psn);

  // The packet of the requester that a PSN belongs to, if all before `accepted` are known to have arrived;
  // negative for one from before the start.
  int64_t packet_of(uint32_t psn, uint64_t accepted) const;
  // The PSN, counted from the first, of the oldest packet that matters; and of packet `sequence`.
  uint64_t oldest_psn(uint64_t accepted) const;
  uint64_t psn_of(uint64_t sequence) const;
  // One past the newest packet of the requester that is done, if all before `accepted` have arrived.
  uint64_t done_end(uint64_t accepted) const;
  bool is_waiting() const { return incomplete_ > 0; }

  // A response has arrived: its payload goes to its place.
  Taken take(const roce::ParsedPacket& packet);
  // Forgets what is complete, if the requester needs it no more.
  void forget_done(uint64_t accepted);

  // What is missing of READs before packet `accepted` of the requester is to be asked for again.
  void ask_again(uint64_t accepted);
  // The next request for what is missing, if any.
  std::optional<Repeat> next_repeat();
  bool has_repeat() const { return !repeats_.empty(); }

  bool has_answer() const { return !answers_.empty(); }
  PacketPtr pull_answer();

 private:
  struct Read {
    RcRequest request;
    uint64_t sequence = 0;
    uint64_t first_psn = 0;
    uint64_t packets = 0;
    uint64_t in_order = 0;           // responses, from the first on
    std::vector<bool> behind_gap{};  // selective repeat: which others have arrived
    uint64_t end_psn() const { return first_psn + packets; }
    bool is_atomic() const { return weft::is_atomic(request.kind); }
    bool is_complete() const { return in_order == packets; }
  };

  Read* read_of(uint64_t psn);
  uint64_t expected_psn() const;
  Arrival place_result(Read& read, const roce::ParsedPacket& packet);
  Arrival place(Read& read, uint64_t psn, const roce::ParsedPacket& packet);
  void note_gap(uint64_t psn);
  void note_arrival(Read& read, uint64_t index);
  void answer(uint64_t psn, uint64_t expected, const roce::ParsedPacket& packet);

  const RcConfig& config_;
  RcCounters& counters_;
  PacketPool& pool_;
  const PsnMap& psn_map_;
  bool selective_repeat_;
  std::deque<Read> reads_;   // by PSN
  uint64_t incomplete_ = 0;  // of them
  uint64_t skipped_ = 0;     // PSNs beyond one a request, of those forgotten
  uint64_t newest_psn_ = 0;  // that arrived
  bool gap_noted_ = false;   // go-back-N: the missing response has not come since it was asked for again
  uint64_t newest_behind_gap_ = 0;
  RingBuffer<uint64_t> repeats_;  // sequences of reads to be asked for again

  roce::RoceHeaders headers_;  // of the next answer
  roce::HeaderTemplate template_;
  SelectiveAnswers answers_;
  std::optional<roce::IntStack> echo_;
  bool as_length_ = false;
};

}  // namespace weft

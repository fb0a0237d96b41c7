// The receiving half of an MRC queue pair: packets in any order in, SACKs and NACKs out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hosts/arrival_window.hpp"
#include "hosts/memory_region.hpp"
#include "hosts/mrc/ev_table.hpp"
#include "hosts/mrc/mrc_config.hpp"
#include "hosts/mrc/mrc_counters.hpp"
#include "hosts/posted_receives.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/mrc_formats.hpp"
#include "packets/psn.hpp"

namespace weft::mrc {

class Responder {
 public:
  Responder(const RcConfig& common, const MrcConfig& config, RcCounters& common_counters,
            MrcCounters& counters, PacketPool& pool, const MemoryRegistry& memory, EvTable& evs,
            CompletionHandler* handler);

  // A packet of a WRITE, maybe trimmed, that came over the plane.
  void on_write(TimePs now, uint32_t plane, const roce::ParsedPacket& packet);
  void on_probe(uint32_t plane, const roce::ParsedPacket& packet, const Headers& mrc);
  // The next SACK, NACK or refusal that goes over the plane, null if none is due.
  PacketPtr pull_control(uint32_t plane);
  bool has_answer(uint32_t plane) const;
  // For the next WRITE with immediate, if common.receive_for_immediate. There is no receiver-not-ready: an
  // immediate that meets no receive fails the connection.
  void post_receive(TimePs now, PostedReceive receive);
  void flush(TimePs now) { fail(now, CompletionStatus::kFlushed); }
  CompletionStatus error() const { return error_; }

 private:
  enum class Kind : uint8_t { kSack, kProbeSack, kTrimNack, kLastHopNack, kWindowNack, kRefusal };
  struct Answer {
    uint64_t sequence = 0;
    uint32_t entropy = 0;
    uint16_t probe_id = 0;
    uint16_t tx_timestamp = 0;
    Kind kind = Kind::kSack;
    bool marked = false;
  };

  // Over the plane on which the packet came, as long as packets may go there: if it has failed, what fails
  // it keeps packets away from it, so that few answers are lost.
  void answer(Answer answer);
  RingBuffer<Answer>* answers_over(uint32_t plane);
  void answer_packet(Kind kind, uint64_t sequence, const roce::ParsedPacket& packet);
  void on_trimmed(const roce::ParsedPacket& packet, uint64_t sequence);
  uint8_t place(const roce::ParsedPacket& packet) const;
  // Whether the peer has more WRITEs with immediate under way than it may.
  bool has_too_many_immediates(const roce::ParsedPacket& packet) const;
  void finish_in_order(TimePs now, const Arrival& arrival);
  // The request that has the packet `sequence`, before which all has arrived.
  void refuse(TimePs now, uint8_t syndrome, uint64_t sequence);
  void fail(TimePs now, CompletionStatus status);
  int64_t sack_offset_of(uint64_t sequence) const;
  bool is_covered_by(const Answer& answer, const Answer& next) const;
  void fill_sack(const Answer& answer, Headers& mrc) const;
  void fill_nack(const Answer& answer, Headers& mrc) const;

  const RcConfig& common_;
  const MrcConfig& config_;
  RcCounters& common_counters_;
  MrcCounters& counters_;
  PacketPool& pool_;
  const MemoryRegistry& memory_;
  EvTable& evs_;
  std::vector<roce::RoceHeaders> headers_;  // of each plane
  PsnMap psn_map_;
  ArrivalWindow arrivals_;
  PostedReceives receives_;
  uint64_t waiting_packets_ = 0;  // behind the gap
  uint64_t received_bytes_ = 0;
  uint64_t delivered_immediates_ = 0;
  uint64_t message_bytes_ = 0;               // of the message that is next in order
  std::vector<RingBuffer<Answer>> answers_;  // by plane
  uint32_t plane_ = 0;                       // of the packet that is looked at
  bool as_length_ = false;  // the peer's packets come without what iCRC would cover, and so go the answers
  CompletionStatus error_ = CompletionStatus::kSuccess;
  uint8_t error_syndrome_ = 0;  // what the peer is told whenever it asks; 0: nothing
  uint64_t error_sequence_ = 0;
};

}  // namespace weft::mrc

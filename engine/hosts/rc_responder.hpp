// The receiving half of an RC queue pair: data packets in, memory written, acknowledgements and CNPs out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "hosts/arrival_window.hpp"
#include "hosts/congestion_notifier.hpp"
#include "hosts/memory_region.hpp"
#include "hosts/message_shape.hpp"
#include "hosts/posted_receives.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/read_responder.hpp"
#include "hosts/selective_answers.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/header_template.hpp"
#include "packets/psn.hpp"

namespace weft {

class RcResponder {
 public:
  // `path_choice` may be null: one path. So may `shared_receives`: it has receives of its own.
  RcResponder(const RcConfig& config, RcCounters& counters, PacketPool& pool, const MemoryRegistry& memory,
              SendGate& gate, PathChoice* path_choice, CompletionHandler* handler,
              std::shared_ptr<SharedReceives> shared_receives);

  // Returns whether the peer is to hear of it.
  bool post_receive(TimePs now, PostedReceive receive);
  // A segment is taken as its packets, one after the other.
  void on_request(TimePs now, const roce::ParsedPacket& packet);
  // The next acknowledgement or CNP, null if none is due.
  PacketPtr pull_control(TimePs now);
  // When on_deadline() is due: a mark waits for the end of the interval between CNPs, a response for its
  // turn. kNever: not at all.
  TimePs next_deadline() const {
    return reads_ == nullptr ? notifier_.due_ps() : std::min(notifier_.due_ps(), reads_->next_deadline());
  }
  void on_deadline(TimePs now);
  // What is marked up to now needs no CNP: the sender has sent all that it will.
  void forget_marks() { notifier_.forget(); }
  bool has_answer() const {
    return pending_answer_ != Answer::kNone || notifier_.has_cnp() || !marks_.empty() ||
           !selective_answers_.empty() || (reads_ != nullptr && reads_->has_result());
  }
  // A packet with data has arrived for the queue pair: whether a switch marked it is reported.
  void note_congestion(TimePs now, const roce::ParsedPacket& packet);

  // The READs that it answers, null before the first.
  ReadResponder* reads() { return reads_.get(); }
  const ReadResponder* reads() const { return reads_.get(); }
  // The next response of a READ, null if there is none or window or pacing forbid it now.
  PacketPtr pull_response(TimePs now);
  // Completes posted receives as flushed, because the other half of the queue pair failed.
  void flush(TimePs now);

  CompletionStatus error() const { return error_; }

 private:
  using Shape = MessageShape;
  using Message = MessageShape::Message;
  enum class Answer : uint8_t { kNone, kAck, kNak };

  void take(TimePs now, const roce::ParsedPacket& packet);
  void take_segment(TimePs now, const roce::ParsedPacket& segment);
  void note_gap(int64_t sequence);
  void note_mark(bool marked);
  void accept(TimePs now, const roce::ParsedPacket& packet);
  void accept_read(TimePs now, const roce::ParsedPacket& packet);
  uint8_t execute_read(TimePs now, const roce::ParsedPacket& packet);
  void repeat(TimePs now, int64_t sequence, const roce::ParsedPacket& packet);
  void note_accepted(const roce::ParsedPacket& packet);
  void take_in_any_order(TimePs now, const roce::ParsedPacket& packet, int64_t signed_sequence);
  void finish_in_order(TimePs now, const Arrival& arrival);
  // These return kSyndromeAck to go on, otherwise the NAK that the packet earns.
  uint8_t check_shape(const Shape& shape, const roce::ParsedPacket& packet) const;
  uint8_t begin_message(const Shape& shape, const roce::ParsedPacket& packet);
  uint8_t place_payload(const Shape& shape, const roce::ParsedPacket& packet);
  // Returns false if foreign memory is not there.
  bool place_in_receive(const roce::ParsedPacket& packet) const;
  uint8_t place_alone(const Shape& shape, const roce::ParsedPacket& packet);
  uint8_t write_to_memory(uint32_t rkey, uint64_t address, const roce::ParsedPacket& packet);
  uint8_t write_lines_to_memory(uint32_t rkey, uint64_t address, const roce::ParsedPacket& packet);
  void finish_message(TimePs now, const Shape& shape, const roce::ParsedPacket& packet);
  void ask_to_wait();
  void refuse(TimePs now, uint8_t syndrome);
  uint8_t ack_syndrome();
  PacketPtr build_answer();
  PacketPtr build_selective_answer();
  PacketPtr build_answer_of_like_marks();
  PacketPtr build_acknowledgement(bool marked);
  PacketPtr build_result();
  PacketPtr build_cnp();
  PacketPtr build_packet();

  const RcConfig& config_;
  RcCounters& counters_;
  PacketPool& pool_;
  const MemoryRegistry& memory_;
  SendGate& gate_;
  PathChoice* path_choice_;

  roce::RoceHeaders headers_;  // of the next answer
  roce::HeaderTemplate template_;
  PsnMap psn_map_;
  uint64_t expected_sequence_ = 0;
  // Of the packets that no acknowledgement has been sent for, go-back-N: those up to answered_end_ have one,
  // then come stretches of like marks that wait for theirs, then packets marked as mark_ says.
  RingBuffer<Marked> marks_;
  uint64_t answered_end_ = 0;
  bool mark_ = false;
  ArrivalWindow arrivals_;  // this and the next: selective repeat only
  SelectiveAnswers selective_answers_;
  std::map<uint64_t, roce::ParsedPacket> reads_behind_gap_;  // selective repeat: without payload
  uint32_t msn_ = 0;                                         // messages completed, 24 bits
  uint32_t acknowledgements_ = 1;                            // that the next one stands for
  std::unique_ptr<ReadResponder> reads_;
  PostedReceives receives_;

  Message message_ = Message::kNone;  // in progress
  uint64_t message_bytes_ = 0;        // received so far
  uint64_t message_limit_bytes_ = 0;  // RETH length of a WRITE, capacity of the receive for a SEND
  uint64_t write_address_ = 0;
  uint32_t write_rkey_ = 0;

  Answer pending_answer_ = Answer::kNone;
  uint8_t pending_syndrome_ = 0;
  uint8_t promised_credits_ = 0;  // code of the newest acknowledgement
  bool nak_outstanding_ = false;  // the expected packet has not come since a NAK
  int64_t newest_out_of_sequence_ = 0;
  bool as_length_ = false;  // the peer's packets come without what iCRC would cover, and so go the answers
  std::optional<roce::IntStack> echo_;
  CongestionNotifier notifier_;
  CompletionStatus error_ = CompletionStatus::kSuccess;
  uint8_t error_syndrome_ = 0;  // the NAK for the peer, again whenever it asks
};

}  // namespace weft

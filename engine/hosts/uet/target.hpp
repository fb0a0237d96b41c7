// The receiving half of a queue pair of UET: requests and control packets of a PDC in, ACKs and NACKs out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "hosts/arrival_window.hpp"
#include "hosts/memory_region.hpp"
#include "hosts/posted_receives.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/uet/credit_ledger.hpp"
#include "hosts/uet/credit_pacer.hpp"
#include "hosts/uet/pdc_table.hpp"
#include "hosts/uet/read_responses.hpp"
#include "hosts/uet/send_arrivals.hpp"
#include "hosts/uet/stream_answers.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

// Learns that a target has credit to send.
struct CreditOwner {
  virtual void on_credit_due() = 0;

 protected:
  ~CreditOwner() = default;
};

class Target final : public CreditTaker {
 public:
  Target(const RcConfig& common, const UetConfig& config, RcCounters& common_counters, UetCounters& counters,
         PacketPool& pool, const MemoryRegistry& memory, PdcTable& pdcs, CreditPacer* pacer,
         CreditOwner& owner, SendGate& gate, PathChoice* path_choice, CompletionHandler* handler);
  ~Target() override;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // A request, maybe trimmed.
  void on_request(TimePs now, const roce::ParsedPacket& packet);
  void on_control(TimePs now, const roce::ParsedPacket& packet, const Control& control);
  // Whether an ACK or NACK to this identifier is about data of READs that it has sent; and such a one.
  bool has_sent_from(uint16_t pdc) const { return reads_ != nullptr && is_open_ && pdc == pdc_; }
  void on_answer(TimePs now, const roce::ParsedPacket& packet);
  // The next data of a READ, null if there is none or window or pacing forbid it now.
  PacketPtr pull_data(TimePs now);
  bool may_have_data() const { return reads_ != nullptr && reads_->may_have_data(); }
  PulledPacket last_pulled() const { return reads_->last_pulled(); }
  TimePs next_deadline() const;
  void on_deadline(TimePs now);
  // The next ACK or NACK, null if none is due.
  PacketPtr pull_control(TimePs now);
  bool has_answer() const { return !answers_.empty() || credit_due_; }
  // For the next SEND, or, with common.receive_for_immediate, WRITE with immediate: one of these that meets
  // no receive fails the connection.
  void post_receive(TimePs now, PostedReceive receive);
  void flush(TimePs now) { fail(now, CompletionStatus::kFlushed); }
  CompletionStatus error() const { return error_; }
  bool has_pdc() const { return is_open_; }
  uint64_t credit_wanted_bytes(TimePs now) const override;
  void grant_credit(uint64_t bytes) override;

 private:
  enum class Kind : uint8_t { kAck, kProbeAck, kRefusal, kNack };
  struct Answer {
    uint64_t sequence = 0;
    TimePs arrived_ps = 0;
    uint16_t entropy = 0;
    uint16_t initiator_pdc = 0;
    uint16_t opaque = 0;  // of the probe
    Kind kind = Kind::kAck;
    uint8_t nack_code = 0;
    bool marked = false;
    // Another one of these may stand for it.
    bool is_plain() const { return kind == Kind::kAck && !marked; }
  };
  // What all packets to a target say of themselves.
  struct Arrived {
    TimePs now;
    const roce::ParsedPacket& packet;
    uint64_t sequence;
    uint16_t initiator_pdc;
  };

  void answer(Kind kind, const Arrived& arrived, uint8_t nack_code = 0, uint16_t opaque = 0);
  void nack(uint8_t code, const Arrived& arrived);
  // Whether the packet is new and of the PDC that is open, which it may have opened; if not, it is answered.
  bool accept(const Arrived& arrived, int64_t signed_sequence, const RequestPacket& request);
  bool open_pdc(const Arrived& arrived, uint16_t psn_offset);
  // When the open PDC is given up unless something comes over it; kNever: there is none.
  TimePs silence_deadline() const { return is_open_ ? heard_ps_ + silence_ps_ : kNever; }
  bool is_of_newest_pdc(uint16_t dpdcid, uint16_t spdcid) const {
    return dpdcid == pdc_ && spdcid == initiator_pdc_ && pdc_ != 0;
  }
  bool is_in_order(const Arrived& arrived);
  void insert(const Arrived& arrived, Arrival arrival, bool asked);
  // The packet's return code; nothing if there is no receive for it, or no memory of READs left.
  std::optional<uint8_t> place(const Arrived& arrived, const WriteHeader& request);
  std::optional<uint8_t> read(const roce::ParsedPacket& packet, const WriteHeader& request);
  void finish_in_order(const Arrived& newest, const Arrival& arrival);
  void count_for_credit(const roce::ParsedPacket& packet, const RequestPacket& request);
  void close_pdc();
  PacketPtr build_credit();
  // The request that has the packet `sequence`, before which all has arrived.
  void refuse(const Arrived& arrived, uint8_t return_code, uint16_t message_id, uint64_t sequence);
  void set_refusal(TimePs now, uint8_t return_code, uint16_t message_id, uint64_t sequence);
  void fail(TimePs now, CompletionStatus status);
  PacketPtr build_ack(TimePs now, const Answer& answer);
  PacketPtr build_nack(const Answer& answer);

  const RcConfig& common_;
  const UetConfig& config_;
  RcCounters& common_counters_;
  UetCounters& counters_;
  PacketPool& pool_;
  const MemoryRegistry& memory_;
  PdcTable& pdcs_;
  CreditPacer* pacer_;  // null: no credits
  CreditOwner& owner_;
  SendGate& gate_;
  PathChoice* path_choice_;
  const bool is_ordered_;
  roce::RoceHeaders headers_;
  WidePsnMap psn_map_;
  // Over all PDCs of the queue pair, one after the other: what comes late of an earlier one is a duplicate.
  ArrivalWindow arrivals_;
  PostedReceives receives_;
  uint64_t waiting_packets_ = 0;  // behind the gap
  uint64_t received_bytes_ = 0;

  bool is_open_ = false;
  const TimePs silence_ps_;
  const uint64_t largest_frame_bytes_;
  TimePs heard_ps_ = 0;                     // when the newest packet of the open PDC came
  uint16_t pdc_ = 0;                        // own identifier, of the newest PDC
  uint16_t initiator_pdc_ = 0;              // the peer's
  std::optional<uint64_t> close_sequence_;  // of the command that closes it
  GapNotices gaps_;                         // ROD
  SendArrivals sends_;
  std::unique_ptr<ReadResponses> reads_;  // null before the first READ

  // Of the open PDC, in bytes of frames.
  uint64_t credit_target_bytes_ = 0;   // that the initiator asks for in all
  uint64_t credit_granted_bytes_ = 0;  // in all
  uint64_t credit_arrived_bytes_ = 0;
  uint64_t credit_advance_bytes_ = 0;  // that arrived before they were granted
  bool credit_due_ = false;            // granted, and not yet sent

  uint64_t message_bytes_ = 0;  // of the message that is next in order
  std::optional<uint32_t> immediate_;
  RingBuffer<Answer> answers_;
  CompletionStatus error_ = CompletionStatus::kSuccess;
  uint8_t error_code_ = 0;  // what the peer is told until it clears it; 0: nothing
  uint16_t error_message_id_ = 0;
  uint64_t error_sequence_ = 0;  // of the request that is refused; all before it has arrived
};

}  // namespace weft::uet

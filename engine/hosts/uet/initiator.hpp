// The sending half of a queue pair of UET: messages in, requests and control packets of a PDC out, ACKs and
// NACKs in. docs/uet.md has its states.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/send_gate.hpp"
#include "hosts/sending_half.hpp"
#include "hosts/uet/credit_ledger.hpp"
#include "hosts/uet/messages.hpp"
#include "hosts/uet/pdc_table.hpp"
#include "hosts/uet/read_arrivals.hpp"
#include "hosts/uet/sender.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "packets/uet_frame.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

enum class PdcState : uint8_t {
  kClosed,
  kSyn,          // packets establish it: the target has not acknowledged one
  kEstablished,  // the target's identifier is known
  kClosing,      // nothing is missing but an acknowledgement of the command to close it
};
const char* pdc_state_name(PdcState state);

class Initiator final : public SendingHalf<Initiator>, public Sender {
 public:
  // `path_choice` may be null: one path.
  Initiator(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
            UetCounters& counters, PacketPool& pool, SendGate& gate, PdcTable& pdcs, PathChoice* path_choice,
            CompletionHandler* handler);
  ~Initiator() { pdcs_.forget(common_.queue_pair, pdc_); }

  void post(TimePs now, RcRequest request);
  // The next packet, null if there is none or window, pacing or want of a PDC forbid it now.
  PacketPtr pull(TimePs now);
  bool may_have_data() const;
  void on_ack(TimePs now, const roce::ParsedPacket& packet);
  void on_nack(TimePs now, const roce::ParsedPacket& packet);
  // A control packet with credit.
  void on_credit(TimePs now, const Control& control);
  // Data of a READ.
  void on_response(TimePs now, const roce::ParsedPacket& packet);
  // The next ACK or NACK of such data, null if none is due.
  PacketPtr pull_control(TimePs now) { return has_answer() ? reads_->pull_control(now, pdc_) : nullptr; }
  bool has_answer() const { return reads_ != nullptr && reads_->has_answer(); }
  TimePs next_deadline() const;
  void on_deadline(TimePs now);

  const Messages& messages() const { return messages_; }
  PdcState pdc_state() const { return state_; }
  void observe(Probe* probe, ConnectionEnds ends) { messages_.observe(probe, ends); }

 private:
  friend SendingHalf<Initiator>;

  // The answers of so many probes are waited for at once: round trips may be longer than they were.
  static constexpr size_t kProbes = 8;

  std::optional<uint64_t> sequence_to_send();
  bool may_send_next() const;
  bool may_read_next() const;
  bool open_pdc(TimePs now, uint64_t first_sequence);
  void close_pdc();
  PacketPtr build_request(const Message& message, uint64_t sequence, uint64_t offset, uint64_t payload_bytes,
                          bool asks);
  template <class... Pds>
  PacketPtr build_message(const Message& message, uint64_t sequence, uint64_t offset, uint64_t payload_bytes,
                          const Pds&... pds);
  template <class Pds>
  PacketPtr build_with_credit(const Message& message, uint64_t sequence, uint64_t offset,
                              uint64_t payload_bytes, const Pds& pds);
  bool has_credit(TimePs now, uint64_t frame_bytes);
  PacketPtr build_control(uint8_t type, uint64_t sequence, uint16_t opaque, bool retransmission, bool asks);
  PacketPtr pull_probe(TimePs now);
  bool should_ask(const Message& message, uint64_t sequence, uint64_t frame_bytes) const;
  bool acknowledge(TimePs now, const SentStream::Arrivals& arrivals);
  void on_probe_answer(TimePs now, uint16_t opaque);
  void on_not_ready(TimePs now, uint64_t sequence, uint16_t entropy);
  void on_gap(TimePs now, uint64_t sequence, uint8_t hop_limit);
  void reopen(TimePs now);
  // Before an answer, packets say how far from its first they are.
  bool reaches(uint64_t sequence) const {
    return state_ != PdcState::kSyn || sequence - pdc_start_ <= kMaxPsnOffset;
  }
  void on_restart() override { messages_.restart(); }
  // A probe asks for the state of a PDC that both sides have: what opens or closes one is repeated instead,
  // and so is what has been found lost and waits for credit that nobody has asked for.
  bool may_probe() const {
    return !is_waiting() || (state_ == PdcState::kEstablished && sent_.in_flight_bytes() > 0);
  }
  void on_timeout(TimePs now);
  void ask_after_reads(TimePs now);
  TimePs answer_deadline() const;
  TimePs question_deadline() const;
  TimePs idle_deadline() const;
  TimePs credit_deadline() const;
  TimePs read_deadline() const;
  void fail(CompletionStatus status);
  std::vector<RcRequest> take_back() { return messages_.withdraw(); }
  uint64_t done_end() const {
    const uint64_t arrived = std::min(sent_.accepted(), refused_sequence_);
    return reads_ == nullptr ? arrived : reads_->done_end(arrived);
  }
  void deliver_completions(TimePs now) {
    messages_.deliver(now, [this] { return done_end(); }, error_);
  }

  PdcTable& pdcs_;
  const size_t largest_frame_bytes_;
  uint8_t data_ecn_;
  WidePsnMap psn_map_;
  Messages messages_;
  std::unique_ptr<ReadArrivals> reads_;     // null before the first READ
  uint64_t refused_sequence_ = UINT64_MAX;  // of the request that the target has refused

  PdcState state_ = PdcState::kClosed;
  uint16_t pdc_ = 0;         // own identifier, of the newest PDC
  uint16_t target_pdc_ = 0;  // from kEstablished on
  uint64_t pdc_start_ = 0;   // its first packet
  uint64_t pdc_close_ = 0;   // kClosing: its last
  CreditLedger ledger_;
  TimePs starved_ps_ = kNever;  // since when credit has been missing
  bool clear_wanted_ = false;   // a response that was not the default one has come

  uint16_t probe_opaque_ = 0;                   // of the newest probe
  std::array<TimePs, kProbes> probes_sent_ps_;  // of the newest ones, by opaque; kNever: not waited for
  TimePs blocked_until_ps_ = 0;                 // the target had no PDC left, or no receive posted
  uint32_t rnr_retries_ = 0;
  uint64_t unreceived_sequence_ = 0;  // of the packet that it had no receive for last
};

}  // namespace weft::uet

// The data of READs that a target sends, over the PDC by which their requests came, in its return direction:
// packets in a sequence of their own, ACKs and NACKs in.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "hosts/memory_region.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/send_gate.hpp"
#include "hosts/uet/placing.hpp"
#include "hosts/uet/sender.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "packets/uet_frame.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

class ReadResponses final : public Sender {
 public:
  // `path_choice` may be null: one path.
  ReadResponses(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory, SendGate& gate,
                PathChoice* path_choice);

  // Whether one more part can be remembered.
  bool has_room() const { return parts_.size() < kMaxOutstanding; }
  // It has been granted.
  void add(const ReadPart& part) { parts_.push_back(part); }
  // The identifiers of the PDC from now on, the own one and the initiator's.
  void open(uint16_t pdc, uint16_t initiator_pdc);
  // Whether all has been sent once. If so, an initiator that closes the PDC has all of it.
  bool is_sent() const { return next_sequence_ == end(); }
  void close(TimePs now);
  void stop();

  // The next packet, null if there is none or window or pacing forbid it now, or is_refused().
  PacketPtr pull(TimePs now);
  bool may_have_data() const;
  void on_ack(TimePs now, const roce::ParsedPacket& packet);
  void on_nack(TimePs now, const roce::ParsedPacket& packet);
  TimePs next_deadline() const;
  void on_deadline(TimePs now);

  // The initiator may not have a part any more: its memory has been deregistered since.
  std::optional<uint16_t> refused_message() const { return refused_message_; }
  // The initiator has not answered once in all retransmissions.
  bool is_unanswered() const { return is_unanswered_; }

 private:
  uint64_t end() const { return first_part_ + parts_.size(); }
  std::optional<uint64_t> sequence_to_send();
  PacketPtr build(const ReadPart& part, uint64_t sequence, bool retransmission, bool asks);
  bool take_news(TimePs now, const SentStream::Arrivals& arrivals);

  const MemoryRegistry& memory_;
  WidePsnMap psn_map_;  // the initiator's: both directions begin with the same PSN
  size_t largest_frame_bytes_;
  std::deque<ReadPart> parts_;  // [first_part_, end()): what is not known to have arrived
  uint64_t first_part_ = 0;
  uint16_t pdc_ = 0;
  uint16_t initiator_pdc_ = 0;
  std::optional<uint16_t> refused_message_;
  bool is_unanswered_ = false;
  bool is_stopped_ = false;
};

}  // namespace weft::uet

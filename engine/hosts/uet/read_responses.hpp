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
#include "hosts/sent_stream.hpp"
#include "hosts/uet/placing.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "packets/uet_frame.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

class ReadResponses {
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
  bool is_sent() const { return next_ == end(); }
  void close(TimePs now);
  void stop();

  // The next packet, null if there is none or window or pacing forbid it now, or is_refused().
  PacketPtr pull(TimePs now);
  bool may_have_data() const;
  PulledPacket last_pulled() const { return last_pulled_; }
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
  void forget_arrived();
  void note_progress(TimePs now);
  void lose(TimePs now, uint64_t sequence, uint16_t entropy);
  void restart(TimePs now);
  uint64_t oldest_frame_bytes();
  void detect_losses(TimePs now);
  bool is_waiting() const { return sent_.highest() != sent_.accepted(); }
  TimePs retransmission_timeout_ps() const;
  TimePs timeout_deadline() const;
  void on_timeout(TimePs now);

  const RcConfig& common_;
  const UetConfig& config_;
  RcCounters& common_counters_;
  UetCounters& counters_;
  PacketPool& pool_;
  const MemoryRegistry& memory_;
  SendGate& gate_;
  PathChoice* path_choice_;
  const bool is_ordered_;
  roce::RoceHeaders headers_;
  WidePsnMap psn_map_;  // the initiator's: both directions begin with the same PSN
  SentStream sent_;
  size_t largest_frame_bytes_;
  std::deque<ReadPart> parts_;  // [first_part_, end()): what is not known to have arrived
  uint64_t first_part_ = 0;
  uint64_t next_ = 0;  // the next packet to be sent for the first time, or again with service rod
  uint16_t pdc_ = 0;
  uint16_t initiator_pdc_ = 0;
  TimePs progress_ps_ = 0;  // when the timeout started to count
  uint32_t retries_ = 0;
  TimePs wait_until_ps_ = kNever;  // what the last pull() was refused for, if for time alone
  PulledPacket last_pulled_;
  std::optional<uint16_t> refused_message_;
  bool is_unanswered_ = false;
  bool is_stopped_ = false;
};

}  // namespace weft::uet

// The sending half of a queue pair of RUDI: messages in, packets out that are answered one by one. There is
// no PDC: a packet is known by its identifier, and kept until it is answered. docs/uet.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/send_gate.hpp"
#include "hosts/sending_half.hpp"
#include "hosts/sent_stream.hpp"
#include "hosts/uet/messages.hpp"
#include "hosts/uet/packet_ids.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "packets/uet_frame.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

class RudiInitiator : public SendingHalf<RudiInitiator> {
 public:
  // `path_choice` may be null: one path.
  RudiInitiator(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                UetCounters& counters, PacketPool& pool, SendGate& gate, PacketIdBlocks& ids,
                PathChoice* path_choice, CompletionHandler* handler);
  RudiInitiator(const RudiInitiator&) = delete;
  RudiInitiator& operator=(const RudiInitiator&) = delete;

  // Throws std::invalid_argument for what may not be done twice, or is not carried.
  void post(TimePs now, RcRequest request);
  // The next packet, null if there is none or window or pacing forbid it now.
  PacketPtr pull(TimePs now);
  bool may_have_data() const;
  PulledPacket last_pulled() const { return last_pulled_; }
  void on_response(TimePs now, const roce::ParsedPacket& packet);
  void on_nack(TimePs now, const roce::ParsedPacket& packet);
  TimePs next_deadline() const;
  void on_deadline(TimePs now);

  const Messages& messages() const { return messages_; }
  void set_recovery_times(RecoveryTimes* times) { sent_.set_recovery_times(times); }
  void observe(Probe* probe, ConnectionEnds ends) { messages_.observe(probe, ends); }
  void fetch() const { sent_.fetch(next_sequence_); }

 private:
  friend SendingHalf<RudiInitiator>;

  bool may_send_next() const;
  // Bytes of the frame that answers a packet of a READ, or else of the packet itself.
  size_t gated_bytes(const Message& message, uint64_t part_bytes) const;
  // Whether a response is what the packet asks for; places data of a READ.
  bool place(const roce::ParsedPacket& packet, const RudiResponsePacket& answer, uint64_t sequence);
  void lose(TimePs now, uint64_t sequence, uint16_t entropy, bool at_last_hop);
  PacketPtr build_request(const Message& message, uint64_t sequence, uint64_t offset, uint64_t payload_bytes);
  // Of a packet that is out; nothing for others, which are counted.
  std::optional<uint64_t> find(uint32_t packet_id);
  void detect_losses(TimePs now);
  void on_timeout(TimePs now);
  TimePs timeout_ps() const;
  TimePs timeout_deadline() const;
  void fail(CompletionStatus status);
  std::vector<RcRequest> take_back() { return messages_.withdraw(); }
  void deliver_completions(TimePs now) {
    messages_.deliver(now, [this] { return sent_.accepted(); }, error_);
  }

  const RcConfig& common_;
  const UetConfig& config_;
  RcCounters& common_counters_;
  UetCounters& counters_;
  PacketPool& pool_;
  SendGate& gate_;
  PathChoice* path_choice_;
  roce::RoceHeaders headers_;
  PacketIds ids_;
  Messages messages_;
  SentStream sent_;
  uint64_t next_sequence_ = 0;
  std::deque<uint64_t> read_ends_;  // of READs under way: one past the last packet
  TimePs progress_ps_ = 0;          // when the timeout started to count
  uint32_t retries_ = 0;
  TimePs wait_until_ps_ = kNever;  // what the last pull() was refused for, if for time alone
  PulledPacket last_pulled_;
};

}  // namespace weft::uet

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
#include "hosts/uet/messages.hpp"
#include "hosts/uet/packet_ids.hpp"
#include "hosts/uet/sender.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "packets/uet_frame.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

class RudiInitiator final : public SendingHalf<RudiInitiator>, public Sender {
 public:
  // `path_choice` may be null: one path.
  RudiInitiator(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
                UetCounters& counters, PacketPool& pool, SendGate& gate, PacketIdBlocks& ids,
                PathChoice* path_choice, CompletionHandler* handler);

  // Throws std::invalid_argument for what may not be done twice, or is not carried.
  void post(TimePs now, RcRequest request);
  // The next packet, null if there is none or window or pacing forbid it now.
  PacketPtr pull(TimePs now);
  bool may_have_data() const;
  void on_response(TimePs now, const roce::ParsedPacket& packet);
  void on_nack(TimePs now, const roce::ParsedPacket& packet);
  TimePs next_deadline() const;
  void on_deadline(TimePs now);

  const Messages& messages() const { return messages_; }
  void observe(Probe* probe, ConnectionEnds ends) { messages_.observe(probe, ends); }

 private:
  friend SendingHalf<RudiInitiator>;

  std::optional<uint64_t> sequence_to_send();
  bool may_send_next() const;
  // Bytes of the frame that answers a packet of a READ, or else of the packet itself.
  size_t gated_bytes(const Message& message, uint64_t part_bytes) const;
  // Whether a response is what the packet asks for; places data of a READ.
  bool place(const roce::ParsedPacket& packet, const RudiResponsePacket& answer, uint64_t sequence);
  PacketPtr build_request(const Message& message, uint64_t sequence, uint64_t offset, uint64_t payload_bytes);
  // Of a packet that is out; nothing for others, which are counted.
  std::optional<uint64_t> find(uint32_t packet_id);
  void fail(CompletionStatus status);
  std::vector<RcRequest> take_back() { return messages_.withdraw(); }
  void deliver_completions(TimePs now) {
    messages_.deliver(now, [this] { return sent_.accepted(); }, error_);
  }

  PacketIds ids_;
  Messages messages_;
  std::deque<uint64_t> read_ends_;  // of READs under way: one past the last packet
};

}  // namespace weft::uet

// The packet delivery contexts (PDCs) of a NIC: which queue pair an identifier belongs to, and how many are
// open.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "hosts/queue_pair.hpp"
#include "hosts/queue_pair_numbers.hpp"
#include "hosts/uet/packet_ids.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

// Initiators send requests, targets answer them. Each role has a limit of its own: with a common one two
// hosts full of initiators would wait for each other for ever.
enum class PdcRole : uint8_t { kInitiator, kTarget };

// 0 stands for none.
constexpr uint32_t kMostPdcs = 0x7FFF;

class PdcTable {
 public:
  // Queue pairs of UET among the NIC's. A number that is taken stays with who has it: the NIC will refuse the
  // other.
  void add(uint32_t number, QueuePair* queue_pair) {
    if (queue_pairs_.find(number) == nullptr) queue_pairs_.insert(number, queue_pair);
  }
  void remove(uint32_t number, const QueuePair* queue_pair) {
    if (queue_pairs_.find(number) == queue_pair) queue_pairs_.erase(number);
  }
  bool has_queue_pair(uint32_t number) const { return queue_pairs_.find(number) != nullptr; }

  // A new identifier for a PDC of the queue pair; nothing if `most` of the role are open. Those closed last
  // are given out last, so that packets that come late do not meet another PDC.
  std::optional<uint16_t> open(PdcRole role, uint32_t queue_pair, uint32_t most) {
    uint32_t& count = open_[static_cast<size_t>(role)];
    if (count >= most) return std::nullopt;
    ++count;
    const uint16_t id = unused();
    entries_[id] = {queue_pair, role, true, false};
    return id;
  }
  // Late packets of a closed PDC still find the queue pair.
  void close(uint16_t id) {
    entries_[id].is_open = false;
    --open_[static_cast<size_t>(entries_[id].role)];
    closed_.push(id);
  }
  // A target closes its PDC: the identifier stays the queue pair's, whose peer may have lost the answer to
  // the close command, and will repeat it, until it opens another.
  void close_and_linger(uint16_t id) {
    entries_[id].is_open = false;
    entries_[id].lingers = true;
    --open_[static_cast<size_t>(entries_[id].role)];
  }
  // The peer has heard of the closing.
  void release(uint32_t queue_pair, uint16_t id) {
    if (id == 0 || entries_[id].queue_pair != queue_pair || !std::exchange(entries_[id].lingers, false))
      return;
    closed_.push(id);
  }
  // The queue pair is going.
  void forget(uint32_t queue_pair, uint16_t id) {
    if (id == 0 || entries_[id].queue_pair != queue_pair) return;
    if (entries_[id].is_open) close(id);
    release(queue_pair, id);
    entries_[id].queue_pair = kNobody;
  }

  // Identifiers of packets of RUDI.
  PacketIdBlocks& packet_ids() { return packet_ids_; }
  // Whom a packet is for; a number that no queue pair has: nobody.
  uint32_t queue_pair_of(const Destination& to) const {
    switch (to.kind) {
      case DestinationKind::kPdc:
        return queue_pair_of(to.number);
      case DestinationKind::kPacketId:
        return packet_ids_.queue_pair_of(to.number);
      case DestinationKind::kQueuePair:
        break;
    }
    return to.number;
  }

  static constexpr uint32_t kNobody = PacketIdBlocks::kNobody;
  uint32_t queue_pair_of(uint32_t id) const {
    return id < entries_.size() ? entries_[id].queue_pair : kNobody;
  }
  uint32_t open_count(PdcRole role) const { return open_[static_cast<size_t>(role)]; }

 private:
  static constexpr size_t kQuarantine = 4096;
  struct Entry {
    uint32_t queue_pair = kNobody;
    PdcRole role = PdcRole::kInitiator;
    bool is_open = false;
    bool lingers = false;
  };
  uint16_t unused() {
    const bool may_grow = entries_.size() <= 2 * kMostPdcs;
    if (closed_.size() > kQuarantine || (!may_grow && !closed_.empty())) return closed_.pop();
    if (may_grow) {
      entries_.emplace_back();
      return static_cast<uint16_t>(entries_.size() - 1);
    }
    // All are open or linger, and fewer can be open than there are.
    const auto lingers = [](const Entry& entry) { return entry.lingers; };
    return static_cast<uint16_t>(std::ranges::find_if(entries_, lingers) - entries_.begin());
  }
  QueuePairNumbers<QueuePair> queue_pairs_;
  PacketIdBlocks packet_ids_;
  std::vector<Entry> entries_ = std::vector<Entry>(1);  // by identifier
  RingBuffer<uint16_t> closed_;                         // oldest first
  std::array<uint32_t, 2> open_{};
};

}  // namespace weft::uet

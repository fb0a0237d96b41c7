// The packet delivery contexts (PDCs) of a NIC: which queue pair an identifier belongs to, and how many are
// open.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hosts/queue_pair_numbers.hpp"
#include "memory/ring_buffer.hpp"

namespace weft {
class UetQueuePair;
}

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
  void add(uint32_t number, UetQueuePair* queue_pair) {
    if (queue_pairs_.find(number) == nullptr) queue_pairs_.insert(number, queue_pair);
  }
  void remove(uint32_t number, const UetQueuePair* queue_pair) {
    if (queue_pairs_.find(number) == queue_pair) queue_pairs_.erase(number);
  }
  bool has_queue_pair(uint32_t number) const { return queue_pairs_.find(number) != nullptr; }

  // A new identifier for a PDC of the queue pair; nothing if `most` of the role are open. Those closed last
  // are given out last, so that packets that come late do not meet another PDC.
  std::optional<uint16_t> open(PdcRole role, uint32_t queue_pair, uint32_t most) {
    uint32_t& count = open_[static_cast<size_t>(role)];
    if (count >= most) return std::nullopt;
    ++count;
    uint16_t id;
    if (closed_.size() > kQuarantine || entries_.size() > 2 * kMostPdcs) {
      id = closed_.pop();
    } else {
      id = static_cast<uint16_t>(entries_.size());
      entries_.emplace_back();
    }
    entries_[id] = {queue_pair, role, true};
    return id;
  }
  // Late packets of a closed PDC still find the queue pair.
  void close(uint16_t id) {
    entries_[id].is_open = false;
    --open_[static_cast<size_t>(entries_[id].role)];
    closed_.push(id);
  }
  // The queue pair is going.
  void forget(uint32_t queue_pair, uint16_t id) {
    if (id == 0 || entries_[id].queue_pair != queue_pair) return;
    if (entries_[id].is_open) close(id);
    entries_[id].queue_pair = kNobody;
  }

  static constexpr uint32_t kNobody = 0xFFFFFFFF;
  uint32_t queue_pair_of(uint32_t id) const {
    return id < entries_.size() ? entries_[id].queue_pair : kNobody;
  }
  uint32_t open_count(PdcRole role) const { return open_[static_cast<size_t>(role)]; }

 private:
  static constexpr size_t kQuarantine = 64;
  struct Entry {
    uint32_t queue_pair = kNobody;
    PdcRole role = PdcRole::kInitiator;
    bool is_open = false;
  };
  QueuePairNumbers<UetQueuePair> queue_pairs_;
  std::vector<Entry> entries_ = std::vector<Entry>(1);  // by identifier
  RingBuffer<uint16_t> closed_;                         // oldest first
  std::array<uint32_t, 2> open_{};
};

}  // namespace weft::uet

// What a sender remembers of the packets that it has sent and that are not all acknowledged.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/cache_line.hpp"
#include "memory/prefetch.hpp"
#include "time/time.hpp"

namespace weft {

struct SentPacket {
  enum class State : uint8_t { kInFlight, kLost, kDelivered };

  // In `entropy`, which has 14 bits at most: the peer has said that this transmission has not arrived. A byte
  // for it would cost every packet three instructions.
  static constexpr uint16_t kMissing = 0x8000;

  TimePs sent_ps = 0;  // the newest transmission
  uint16_t frame_bytes = 0;
  uint16_t entropy = 0;
  State state = State::kInFlight;
  bool retransmitted = false;

  bool is_missing() const { return (entropy & kMissing) != 0; }
  uint16_t path() const { return entropy & static_cast<uint16_t>(~kMissing); }
};
static_assert(sizeof(SentPacket) == 16);

// A ring by sequence number. It grows with the window, so that thousands of idle queue pairs stay small.
class SentPackets {
 public:
  SentPacket& operator[](uint64_t sequence) { return ring_[sequence & (ring_.size() - 1)]; }

  // Makes room for `sequence`, the packets from `oldest` on being kept.
  void make_room(uint64_t oldest, uint64_t sequence) {
    if (sequence - oldest < ring_.size()) return;
    CacheLineVector<SentPacket> larger(ring_.empty() ? kFirstPackets : 2 * ring_.size());
    for (uint64_t at = oldest; at < oldest + ring_.size(); ++at)
      larger[at & (larger.size() - 1)] = (*this)[at];
    ring_ = std::move(larger);
  }

  // Prefetches this one and some that follow it.
  void fetch(uint64_t sequence) const {
    if (!ring_.empty())
      prefetch<CacheLevel::kSecond>(&ring_[sequence & (ring_.size() - 1)], 2 * kCacheLineBytes);
  }

 private:
  static constexpr size_t kFirstPackets = 16;
  CacheLineVector<SentPacket> ring_;  // a power of two long
};

}  // namespace weft

// Identifiers of packets of RUDI, which say alone whom an answer is for: a NIC's queue pairs take them in
// blocks, so that none is given out again while late answers may name it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

namespace weft::uet {

// The blocks of a NIC.
class PacketIdBlocks {
 public:
  static constexpr uint32_t kBits = 12;
  static constexpr uint32_t kBlock = 1u << kBits;  // identifiers of a block
  static constexpr uint32_t kNobody = 0xFFFFFFFF;

  // The block that was given back the longest time ago, or was never taken. A queue pair holds few of the
  // 2^20 (PacketIds), so there is always one.
  uint32_t take(uint32_t queue_pair) {
    do next_ = (next_ + 1) & (kBlocks - 1);
    while (!owners_.try_emplace(next_, queue_pair).second);
    return next_;
  }
  void give_back(uint32_t block) { owners_.erase(block); }
  uint32_t queue_pair_of(uint32_t packet_id) const {
    const auto found = owners_.find(packet_id >> kBits);
    return found == owners_.end() ? kNobody : found->second;
  }

 private:
  static constexpr uint32_t kBlocks = 1u << (32 - kBits);
  std::unordered_map<uint32_t, uint32_t> owners_;
  uint32_t next_ = kBlocks - 1;
};

// Those of the packets that a queue pair has outstanding, by their sequence numbers.
class PacketIds {
 public:
  PacketIds(PacketIdBlocks& blocks, uint32_t queue_pair) : blocks_(blocks), queue_pair_(queue_pair) {}
  ~PacketIds() {
    for (const uint32_t block : taken_) blocks_.give_back(block);
  }
  PacketIds(const PacketIds&) = delete;
  PacketIds& operator=(const PacketIds&) = delete;

  // `sequence` is outstanding, or the next one to be sent.
  uint32_t id(uint64_t sequence) {
    const uint64_t index = (sequence >> PacketIdBlocks::kBits) - first_;
    while (taken_.size() <= index) taken_.push_back(blocks_.take(queue_pair_));
    return taken_[index] << PacketIdBlocks::kBits | (sequence & (PacketIdBlocks::kBlock - 1));
  }
  // The packet that has the identifier; nothing if none of those blocks has.
  std::optional<uint64_t> sequence(uint32_t id) const {
    for (uint64_t index = 0; index < taken_.size(); ++index) {
      if (taken_[index] == id >> PacketIdBlocks::kBits)
        return (first_ + index) << PacketIdBlocks::kBits | (id & (PacketIdBlocks::kBlock - 1));
    }
    return std::nullopt;
  }
  // All packets before this one have been answered.
  void release_before(uint64_t sequence) {
    for (; !taken_.empty() && first_ < sequence >> PacketIdBlocks::kBits; ++first_) {
      blocks_.give_back(taken_.front());
      taken_.pop_front();
    }
  }

 private:
  PacketIdBlocks& blocks_;
  const uint32_t queue_pair_;
  uint64_t first_ = 0;  // block of sequence numbers that taken_ begins with
  std::deque<uint32_t> taken_;
};

}  // namespace weft::uet

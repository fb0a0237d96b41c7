// A ring of work of a client, as the NIC takes from it. Whatever the client writes there, it is copied before
// it is looked at, and no number of its leads outside the ring.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "verbs/protocol.hpp"
#include "verbs/shared_memory.hpp"

namespace weft::verbs {

template <class Entry>
class WorkRing {
 public:
  // Of entries of that size, 8 bytes or a multiple, `entries` of them rounded up to a power of 2; at most
  // `max_pieces` pieces follow one.
  WorkRing(uint32_t entries, uint32_t entry_bytes, uint32_t max_pieces)
      : size_(std::bit_ceil(std::max<uint32_t>(entries, 1))),
        entry_bytes_(entry_bytes),
        max_pieces_(max_pieces),
        copy_(entry_bytes / sizeof(uint64_t)) {}

  uint32_t size() const { return size_; }
  uint32_t entry_bytes() const { return entry_bytes_; }
  uint32_t max_pieces() const { return max_pieces_; }
  size_t size_bytes() const { return sizeof(WorkCounters) + static_cast<size_t>(size_) * entry_bytes_; }
  // Where it lies in the memory, which outlives it.
  void place(const SharedMemory& memory, size_t offset_bytes) {
    counters_ = memory.at<WorkCounters>(offset_bytes);
    entries_ = memory.at<uint8_t>(offset_bytes + sizeof(WorkCounters));
  }

  // What is there to take now. A client that posts meanwhile rings again, so that it keeps nobody here.
  uint32_t waiting() const {
    return std::min(counters_->posted.load(std::memory_order_acquire) - taken_, size_);
  }
  // The next entry that was posted, null if there is none. It holds until the next call. A count beyond the
  // ring says that the client has broken it: nothing of it is taken until the queue pair is reset.
  const Entry* take() {
    const uint32_t waiting = counters_->posted.load(std::memory_order_acquire) - taken_;
    if (waiting == 0 || waiting > size_) return nullptr;
    std::memcpy(copy_.data(), entries_ + static_cast<size_t>(taken_ & (size_ - 1)) * entry_bytes_,
                entry_bytes_);
    counters_->taken.store(++taken_, std::memory_order_release);
    return reinterpret_cast<const Entry*>(copy_.data());
  }
  // What follows the entry that was taken last, its pieces or inline data.
  const uint8_t* after_entry() const {
    return reinterpret_cast<const uint8_t*>(copy_.data()) + sizeof(Entry);
  }
  uint32_t room_bytes() const { return entry_bytes_ - static_cast<uint32_t>(sizeof(Entry)); }

  // Forgets what was posted and not taken.
  void drop() {
    taken_ = counters_->posted.load(std::memory_order_acquire);
    counters_->taken.store(taken_, std::memory_order_release);
  }

 private:
  uint32_t size_;
  uint32_t entry_bytes_;
  uint32_t max_pieces_;
  std::vector<uint64_t> copy_;
  WorkCounters* counters_ = nullptr;
  const uint8_t* entries_ = nullptr;
  uint32_t taken_ = 0;
};

// Work identifiers of receives that the engine holds, each at a place that it is named by.
class HeldReceives {
 public:
  size_t count() const { return ids_.size() - free_.size(); }
  uint64_t put(uint64_t work_id) {
    if (free_.empty()) {
      ids_.push_back(work_id);
      return ids_.size() - 1;
    }
    const uint32_t place = free_.back();
    free_.pop_back();
    ids_[place] = work_id;
    return place;
  }
  uint64_t take(uint64_t place) {
    free_.push_back(static_cast<uint32_t>(place));
    return ids_[place];
  }

 private:
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> free_;
};

}  // namespace weft::verbs

// A first-in first-out queue in one growing block of memory: what a port keeps its packets in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "memory/cache_line.hpp"

namespace weft {

// Slots hold a value or nothing at all, so that a push does not read what was there: in a queue that has been
// left alone for long that would have to come from memory first.
template <class T>
class RingBuffer {
 public:
  RingBuffer() = default;
  ~RingBuffer() { release(); }
  RingBuffer(RingBuffer&& other) noexcept { swap(other); }
  RingBuffer& operator=(RingBuffer&& other) noexcept {
    RingBuffer taken(std::move(other));
    swap(taken);
    return *this;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Where front() is; not looked at.
  const T* first_slot() const { return slots_ + head_; }
  // The queue must not be empty for these.
  T& front() { return slots_[head_]; }
  const T& front() const { return slots_[head_]; }
  T& operator[](size_t index) { return slots_[(head_ + index) & mask()]; }
  const T& operator[](size_t index) const { return slots_[(head_ + index) & mask()]; }
  const T& back() const { return slots_[(head_ + size_ - 1) & mask()]; }

  void push(T value) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    std::construct_at(slots_ + ((head_ + size_) & mask()), std::move(value));
    ++size_;
  }

  void push_front(T value) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    head_ = (head_ - 1) & static_cast<uint32_t>(mask());
    std::construct_at(slots_ + head_, std::move(value));
    ++size_;
  }

  // Takes out every value that equals this one; the others keep their order.
  void erase(const T& value) {
    for (size_t left = size_; left > 0; --left) {
      T other = pop();
      if (!(other == value)) push(std::move(other));
    }
  }

  // The queue must not be empty.
  T pop() {
    T value = std::move(slots_[head_]);
    std::destroy_at(slots_ + head_);
    head_ = (head_ + 1) & static_cast<uint32_t>(mask());
    --size_;
    return value;
  }

 private:
  static constexpr uint32_t kFirstSlots = 4;

  size_t mask() const { return capacity_ - 1; }
  void grow() {
    const uint32_t capacity = capacity_ == 0 ? kFirstSlots : 2 * capacity_;  // a power of two, always
    T* larger = CacheLineAllocator<T>().allocate(capacity);
    for (uint32_t i = 0; i < size_; ++i) std::construct_at(larger + i, std::move((*this)[i]));
    const uint32_t size = size_;
    release();
    slots_ = larger;
    size_ = size;
    capacity_ = capacity;
    head_ = 0;
  }

  void swap(RingBuffer& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
    std::swap(head_, other.head_);
    std::swap(size_, other.size_);
  }
  void release() {
    for (uint32_t i = 0; i < size_; ++i) std::destroy_at(&(*this)[i]);
    if (slots_ != nullptr) CacheLineAllocator<T>().deallocate(slots_, capacity_);
    size_ = 0;
  }

  T* slots_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t head_ = 0;
  uint32_t size_ = 0;
};

}  // namespace weft

// A first-in first-out queue in one growing block of memory: what a port and a link keep their packets in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace weft {

template <class T>
class RingBuffer {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // The queue must not be empty for these.
  T& front() { return slots_[head_]; }
  const T& front() const { return slots_[head_]; }
  T& operator[](size_t index) { return slots_[(head_ + index) & mask()]; }
  const T& operator[](size_t index) const { return slots_[(head_ + index) & mask()]; }
  const T& back() const { return slots_[(head_ + size_ - 1) & mask()]; }

  void push(T value) {
    if (size_ == capacity_) grow();
    slots_[(head_ + size_) & (mask())] = std::move(value);
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
    head_ = (head_ + 1) & static_cast<uint32_t>(mask());
    --size_;
    return value;
  }

 private:
  static constexpr uint32_t kFirstSlots = 4;

  size_t mask() const { return capacity_ - 1; }
  void grow() {
    const uint32_t capacity = capacity_ == 0 ? kFirstSlots : 2 * capacity_;  // a power of two, always
    auto larger = std::make_unique<T[]>(capacity);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    capacity_ = capacity;
    head_ = 0;
  }

  std::unique_ptr<T[]> slots_;
  uint32_t capacity_ = 0;
  uint32_t head_ = 0;
  uint32_t size_ = 0;
};

}  // namespace weft

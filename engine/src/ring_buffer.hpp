// A first-in first-out queue in one growing block of memory: what a port and a link keep their packets in.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace weft {

template <class T>
class RingBuffer {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // The queue must not be empty for these.
  T& front() { return slots_[head_]; }
  const T& front() const { return slots_[head_]; }
  T& operator[](size_t index) { return slots_[(head_ + index) & (slots_.size() - 1)]; }
  const T& back() const { return slots_[(head_ + size_ - 1) & (slots_.size() - 1)]; }

  void push(T value) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_) & (slots_.size() - 1)] = std::move(value);
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
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
    return value;
  }

 private:
  static constexpr size_t kFirstSlots = 4;

  void grow() {
    std::vector<T> larger(slots_.empty() ? kFirstSlots : 2 * slots_.size());  // a power of two, always
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(slots_[(head_ + i) & (slots_.size() - 1)]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> slots_;
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace weft

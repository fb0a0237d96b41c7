// Who a queue pair number of one NIC belongs to. NICs give numbers out in order, so almost all are small and
// close together: those index a vector, and only numbers of one's own far up are hashed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "memory/prefetch.hpp"

namespace weft {

template <class T>
class QueuePairNumbers {
 public:
  // Null if the number is not in use.
  T* find(uint32_t number) const {
    if (number < small_.size()) return small_[number];
    if (number < kSmall) return nullptr;
    const auto found = large_.find(number);
    return found == large_.end() ? nullptr : found->second;
  }

  // Calls visit(T&) for the owners of small numbers; if more than `most` numbers have been given, of none.
  template <class Visit>
  void for_each_of_few(size_t most, Visit&& visit) const {
    if (small_.size() > most) return;
    for (T* owner : small_)
      if (owner != nullptr) visit(*owner);
  }
  // Prefetches what for_each_of_few() reads.
  void fetch(size_t most) const {
    if (small_.size() <= most) prefetch<CacheLevel::kSecond>(small_.data(), small_.size() * sizeof(T*));
  }

  void insert(uint32_t number, T* owner) {
    if (number >= kSmall) {
      large_[number] = owner;
      return;
    }
    if (number >= small_.size()) small_.resize(number + 1);
    small_[number] = owner;
  }

  // The number must be in use.
  void erase(uint32_t number) {
    if (number >= kSmall)
      large_.erase(number);
    else
      small_[number] = nullptr;
  }

 private:
  static constexpr uint32_t kSmall = 1u << 16;

  std::vector<T*> small_;
  std::unordered_map<uint32_t, T*> large_;
};

}  // namespace weft

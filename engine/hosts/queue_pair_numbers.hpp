// Who a queue pair number of one NIC belongs to. NICs give numbers out in order, so almost all are small and
// close together: those index a vector, and only numbers of one's own far up are hashed.
#pragma once

#include <algorithm>
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

  // Prefetches what find() reads of the numbers given last.
  void fetch() const {
    const size_t first = small_.size() - std::min(small_.size(), kNewest);
    prefetch<CacheLevel::kSecond>(small_.data() + first, (small_.size() - first) * sizeof(T*));
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
  static constexpr size_t kNewest = 32;

  std::vector<T*> small_;
  std::unordered_map<uint32_t, T*> large_;
};

}  // namespace weft

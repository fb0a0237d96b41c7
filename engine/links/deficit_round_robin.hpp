// Deficit weighted round robin among the classes of a port (Shreedhar and Varghese, "Efficient Fair Queueing
// using Deficit Round Robin", SIGCOMM 1995).
#pragma once

#include <array>
#include <cstdint>

namespace weft {

class DeficitRoundRobin {
 public:
  static constexpr int kMaxClasses = 8;
  using Quanta = std::array<uint32_t, kMaxClasses>;

  // Bytes a class may send each round; 0: the class takes no part.
  explicit DeficitRoundRobin(const Quanta& quantum_bytes) : quantum_bytes_(quantum_bytes) {
    for (int each = 0; each < kMaxClasses; ++each)
      members_ |= (quantum_bytes[slot(each)] != 0 ? 1u : 0u) << each;
  }

  // Bit per class that takes part.
  uint32_t members() const { return members_; }

  // The class whose first packet goes next, and is paid for. `ready` has a bit for each class that may send,
  // at least one of them a member; head_bytes(class) is the size of its first packet.
  template <class HeadBytes>
  int next(uint32_t ready, HeadBytes&& head_bytes) {
    for (;;) {
      if ((ready & members_ & (1u << current_)) != 0) {
        int64_t& deficit_bytes = deficit_bytes_[slot(current_)];
        if (!granted_) {
          deficit_bytes += quantum_bytes_[slot(current_)];
          granted_ = true;
        }
        const auto size = static_cast<int64_t>(head_bytes(current_));
        if (size <= deficit_bytes) {
          deficit_bytes -= size;
          return current_;
        }
      }
      current_ = (current_ + 1) % kMaxClasses;
      granted_ = false;
    }
  }

  // The class whose turn it is, where sizes are not known in advance: each packet is paid for by spend(), and
  // a class goes on while it has anything left (surplus round robin; Adiseshu, Parulkar and Varghese, "A
  // Reliable and Scalable Striping Protocol", SIGCOMM 1996).
  int next(uint32_t ready) {
    const int chosen = next(ready, [](int) { return 1; });
    ++deficit_bytes_[slot(chosen)];
    return chosen;
  }
  void spend(int priority_class, uint64_t bytes) {
    deficit_bytes_[slot(priority_class)] -= static_cast<int64_t>(bytes);
  }

  // A class that has nothing left to send keeps no credit for later.
  void emptied(int priority_class) {
    int64_t& deficit_bytes = deficit_bytes_[slot(priority_class)];
    if (deficit_bytes > 0) deficit_bytes = 0;
  }

 private:
  static size_t slot(int priority_class) { return static_cast<size_t>(priority_class); }

  Quanta quantum_bytes_;
  uint32_t members_ = 0;
  std::array<int64_t, kMaxClasses> deficit_bytes_{};
  int current_ = 0;
  bool granted_ = false;  // the present class has had its quantum of this round
};

}  // namespace weft

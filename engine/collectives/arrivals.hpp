// What has arrived over a channel and nobody has waited for, and who waits for what has not.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "memory/flat_map.hpp"
#include "time/time.hpp"

namespace weft {

// By the immediate of the message; of several with the same, the first in is the first out. Times are 0 or
// more.
class Arrivals {
 public:
  struct Waiter {
    uint32_t run = 0;
    uint32_t step = 0;
    uint32_t token = 0;
  };

  // A message has come: returns who has waited for it, or keeps when it came.
  std::optional<Waiter> came(uint32_t immediate, TimePs now) {
    if (const Held* held = held_.find(immediate); held != nullptr && held->is_waiter()) {
      const Held first = take(immediate, *held);
      return Waiter{first.run, first.low, first.high};
    }
    const auto time = static_cast<uint64_t>(now);
    hold(immediate, {kNobody, static_cast<uint32_t>(time), static_cast<uint32_t>(time >> 32)});
    return std::nullopt;
  }

  // Somebody wants a message: returns when it came, or keeps who waits.
  std::optional<TimePs> await(uint32_t immediate, const Waiter& waiter) {
    if (const Held* held = held_.find(immediate); held != nullptr && !held->is_waiter()) {
      const Held first = take(immediate, *held);
      return static_cast<TimePs>(uint64_t{first.high} << 32 | first.low);
    }
    hold(immediate, {waiter.run, waiter.step, waiter.token});
    return std::nullopt;
  }

  // Nobody of this run waits any more.
  void forget_waiters(uint32_t run);

 private:
  static constexpr uint32_t kNobody = 0;            // numbers of runs begin at 1
  static constexpr uint32_t kNothing = 0x80000000;  // no time has such an upper half
  // A waiter, with step and token, or a time in halves; of 12 bytes, so that four entries are a cache line.
  struct Held {
    uint32_t run = kNobody;
    uint32_t low = 0;
    uint32_t high = kNothing;
    bool is_waiter() const { return run != kNobody; }
    explicit operator bool() const { return is_waiter() || high != kNothing; }
  };

  void hold(uint32_t immediate, Held held);
  Held take(uint32_t immediate, Held first);

  FlatMap<uint32_t, Held> held_;
  std::unordered_map<uint32_t, std::deque<Held>> more_;  // after the first of an immediate
};

}  // namespace weft

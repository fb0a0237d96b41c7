// How long a worker waits for a result before it sends a contribution again: the least timeout, doubled until
// results come within it. Queues that are longer than the least one allows for would fill with what is sent
// again.
//
// A queue delays every result, a loss those of some messages. So the shortest time of a window of messages
// counts, not a mean as in RFC 6298, which losses of other workers raise, too. Nor need messages be left out
// that were sent again (its section 3): their time counts from the first transmission, so it is never too
// short.
#pragma once

#include <cstdint>
#include <limits>

#include "time/time.hpp"

namespace weft {

class AggregationTimeout {
 public:
  // A window has at least so many results. Fewer may all be late because of one loss, or of a worker that was
  // late.
  static constexpr uint64_t kLeastResults = 16;

  AggregationTimeout(TimePs least_ps, uint32_t most_doublings);

  // Doublings for a message that has timed out so often.
  uint32_t doublings(uint32_t timeouts) const;
  TimePs after(uint32_t doublings) const { return least_ps_ << doublings; }
  // The result of `message` came so long after it was sent for the first time; the worker sends
  // `next_message` next.
  void on_result(uint64_t message, uint64_t next_message, TimePs elapsed_ps);

 private:
  static constexpr TimePs kNone = std::numeric_limits<TimePs>::max();

  TimePs least_ps_;
  uint32_t most_doublings_;
  uint32_t doublings_ = 0;
  uint64_t window_end_ = 0;  // the first message sent after the present window of observation began
  uint64_t results_ = 0;     // of this window
  TimePs shortest_ps_ = kNone;
};

}  // namespace weft

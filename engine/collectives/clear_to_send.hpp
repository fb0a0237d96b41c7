// Receiver-driven admission: a channel's sender transmits only what its receiver has cleared.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "hosts/rc_request.hpp"
#include "observe/statistics.hpp"
#include "time/time.hpp"

namespace weft {

// window: messages of a run that may be cleared and not there yet.
// chunk_bytes: longer transfers of lanes are cut into messages of so many bytes, each of which is cleared.
struct ClearToSendConfig {
  uint32_t window = 8;
  uint64_t chunk_bytes = 128 * 1024;
};

constexpr uint32_t kMaxClearToSendWindow = 1024;
// A chunk is a frame's payload at least: no smaller one keeps anything out of a queue.
constexpr uint64_t kMinClearToSendChunkBytes = 256;

#define WEFT_CLEAR_TO_SEND_COUNTERS(STATISTIC)                                          \
  STATISTIC(uint64_t, clearances_sent, "packets that clear messages to be sent")        \
  STATISTIC(uint64_t, cleared_messages, "messages sent that the receiver had cleared")  \
  STATISTIC(uint64_t, held_messages, "messages that waited until the receiver did so")  \
  STATISTIC(int64_t, clearance_wait_ps, "time that these waited, summed over messages") \
  STATISTIC(int64_t, clearance_stall_ps, "time in which any message waited")

struct ClearToSendCounters {
  WEFT_STATISTICS(ClearToSendCounters, WEFT_CLEAR_TO_SEND_COUNTERS)
};

// Of a channel: what each run may send and is to receive over it, by the tag of the run's immediates. Runs
// have windows of their own, so that one whose peer is not ready keeps none of the others' messages back.
struct ClearingState {
  struct Held {
    RcRequest request;
    TimePs since_ps = 0;
  };
  struct OfRun {
    // The sender's.
    uint64_t cleared = 0;  // messages that may be sent now
    std::deque<Held> held;
    // The receiver's.
    uint64_t run = 0;             // its number; 0: it receives nothing
    uint64_t to_clear = 0;        // messages that are to come and are not cleared
    uint64_t in_flight = 0;       // cleared, and not there
    uint64_t transfers_left = 0;  // not there as a whole
    bool is_over() const {
      return cleared == 0 && held.empty() && to_clear == 0 && in_flight == 0 && transfers_left == 0;
    }
  };

  ClearToSendConfig config;
  uint32_t clearances = 0;           // the channel over which they travel, both ways
  std::map<uint32_t, OfRun> runs{};  // ordered, so that requests are flushed in the same order in each run
};

}  // namespace weft

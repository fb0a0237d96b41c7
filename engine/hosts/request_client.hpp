// What clients of services have in common: numbered requests, some of them under way, each sent again until
// it is answered. They are one run, from start() to the last answer.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule_executor.hpp"
#include "hosts/queue_pair.hpp"
#include "packets/packet.hpp"
#include "time/time.hpp"

namespace weft {

struct RequestConfig {
  uint32_t requests = 1;
  uint16_t window = 1;  // under way at once, a power of two
  // Doubles with every retry, at most timeout_backoff_limit times; the run fails after retry_limit of one
  // request.
  TimePs retransmission_timeout_ps = 0;
  uint32_t timeout_backoff_limit = 5;
  uint32_t retry_limit = 30;
};

// Throws std::invalid_argument naming the first parameter that is out of range.
void check(const RequestConfig& config);

// Its end is in the executor's list of ends, as run 0.
class RequestClient : public QueuePair {
 public:
  // `executor` outlives the client. Throws as check().
  RequestClient(const RequestConfig& config, ScheduleExecutor& executor);

  // Sends the first request at `start_ps`. Throws std::logic_error the second time.
  void start(TimePs start_ps);
  // Ends the run, if it has not ended.
  void cancel(TimePs now);
  const RunStatus& status() const { return status_; }
  uint64_t retransmitted_packets() const { return retransmitted_packets_; }

  PacketPtr pull(TimePs now) override;
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;

 protected:
  struct Slot {
    bool busy = false;
    bool queued = false;  // stands in resend_
    uint32_t sequence = 0;
    uint32_t request = 0;
    uint32_t timeouts = 0;
    TimePs deadline_ps = kNever;
  };

  bool is_running() const { return status_.state == RunState::kRunning; }
  // Of a request that is sent for the first time; a sequence number is one attempt.
  virtual void begin(TimePs now, uint32_t request) = 0;
  virtual PacketPtr compose(uint32_t sequence, uint32_t request) = 0;
  // The request whose attempt this is, if it waits for an answer.
  std::optional<uint32_t> awaited(uint32_t sequence) const;
  // Its answer has come; with `again` it is tried anew, which takes a window of 1.
  void answered(TimePs now, uint32_t sequence, bool again = false);

 private:
  const Slot& slot_of(uint32_t sequence) const { return slots_[sequence % config_.window]; }
  std::optional<uint32_t> next_request();
  PacketPtr send(TimePs now, Slot& slot);
  void end(TimePs now, RunState state, const std::string& reason);

  const RequestConfig config_;
  ScheduleExecutor& executor_;
  RunStatus status_;
  TimePs start_ps_ = kNever;
  std::vector<Slot> slots_;
  std::optional<uint32_t> to_retry_;
  uint32_t next_request_ = 0;
  uint32_t next_sequence_ = 0;
  std::deque<Slot*> resend_;
  uint64_t retransmitted_packets_ = 0;
};

}  // namespace weft

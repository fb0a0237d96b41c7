// A host's part in the services of switches: a queue pair that passes barriers or counts in a counter
// (docs/spec/services.md).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule_executor.hpp"
#include "hosts/queue_pair.hpp"
#include "observe/statistics.hpp"
#include "packets/header_template.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"
#include "time/time.hpp"

namespace weft {

enum class ServiceOperation : uint8_t { kBarrier = 0, kFetchAndAdd = 1, kCompareAndSwap = 2 };

struct ServiceConfig {
  uint16_t group_id = 0;
  uint16_t epoch = 0;
  uint32_t q_key = 0;
  uint16_t member = 0;  // of barriers: rank among the children of the leaf; of counters: number of the client

  ServiceOperation operation = ServiceOperation::kBarrier;
  uint32_t requests = 1;
  uint16_t cells = 1;   // which requests use in turn, from 0
  uint16_t window = 1;  // requests under way, a power of two; 1 unless kFetchAndAdd
  uint64_t addend = 1;  // a compare-and-swap is tried until it has added that

  roce::MacAddress source_mac{};
  roce::MacAddress destination_mac{};
  roce::IpAddress source_ip;
  roce::IpAddress destination_ip;  // of the leaf
  uint16_t source_udp_port = 0xC000;

  // Doubles with every retry, at most timeout_backoff_limit times; the run fails after retry_limit of one
  // request.
  TimePs retransmission_timeout_ps = 0;
  uint32_t timeout_backoff_limit = 5;
  uint32_t retry_limit = 30;
};

// Throws std::invalid_argument naming the first parameter that is out of range.
void check(const ServiceConfig& config);

#define WEFT_SERVICE_COUNTERS(STATISTIC)                                                  \
  STATISTIC(uint64_t, requests_sent, "retransmissions included")                          \
  STATISTIC(uint64_t, retransmitted_packets, "requests sent again")                       \
  STATISTIC(uint64_t, answers_accepted, "awaited")                                        \
  STATISTIC(uint64_t, stale_answers, "not accepted: of a request that has been answered") \
  STATISTIC(uint64_t, foreign_answers, "not accepted: of another group, key, epoch or client")

struct ServiceCounters {
  WEFT_STATISTICS(ServiceCounters, WEFT_SERVICE_COUNTERS)
};

// A request and its answer. A barrier's value is 0, a counter's the one that the request has found.
struct ServiceRecord {
  TimePs started_ps = 0;
  TimePs finished_ps = 0;
  uint64_t value = 0;
  uint32_t attempts = 0;  // of a compare-and-swap
};

// All its requests are one run: from start() to the last answer. It ends in the executor's list of ends, as
// run 0.
class ServiceClient : public QueuePair {
 public:
  // `pool` and `executor` outlive the client. Throws as check().
  ServiceClient(const ServiceConfig& config, PacketPool& pool, ScheduleExecutor& executor);

  // Sends the first request at `start_ps`. Throws std::logic_error the second time.
  void start(TimePs start_ps);
  // Ends the run, if it has not ended.
  void cancel(TimePs now);

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override;
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;

  const RunStatus& status() const { return status_; }
  // Of all requests, in their order; those without an answer are zeros.
  const std::vector<ServiceRecord>& records() const { return records_; }
  const ServiceCounters& counters() const { return counters_; }

 private:
  struct Slot {
    bool busy = false;
    bool queued = false;  // stands in resend_
    uint32_t sequence = 0;
    uint32_t request = 0;
    uint32_t timeouts = 0;
    uint64_t comparand = 0;
    TimePs deadline_ps = kNever;
  };

  bool is_running() const { return status_.state == RunState::kRunning; }
  uint16_t cell_of(uint32_t request) const { return static_cast<uint16_t>(request % config_.cells); }
  Slot* slot_answered(const roce::ParsedPacket& packet, uint64_t& value);
  std::optional<uint32_t> next_request();
  PacketPtr send(TimePs now, Slot& slot);
  void end(TimePs now, RunState state, const std::string& reason);

  const ServiceConfig config_;
  PacketPool& pool_;
  ScheduleExecutor& executor_;
  roce::RoceHeaders headers_;  // of the next request
  roce::HeaderTemplate template_;
  ServiceCounters counters_;
  RunStatus status_;
  TimePs start_ps_ = kNever;

  std::vector<Slot> slots_;
  std::vector<uint64_t> expected_;    // by cell: what a compare-and-swap takes the value to be
  std::optional<uint32_t> to_retry_;  // a compare-and-swap that found another value
  uint32_t next_request_ = 0;
  uint32_t next_sequence_ = 0;
  std::deque<Slot*> resend_;
  std::vector<ServiceRecord> records_;
};

}  // namespace weft

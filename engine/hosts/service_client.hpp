// A host's part in the services of switches: a queue pair that passes barriers or counts in a counter
// (docs/spec/services.md).
#pragma once

#include <cstdint>
#include <vector>

#include "hosts/request_client.hpp"
#include "observe/statistics.hpp"
#include "packets/header_template.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"
#include "time/time.hpp"

namespace weft {

enum class ServiceOperation : uint8_t { kBarrier = 0, kFetchAndAdd = 1, kCompareAndSwap = 2 };

struct ServiceConfig {
  RequestConfig requests;  // with a window of 1 unless kFetchAndAdd
  uint16_t group_id = 0;
  uint16_t epoch = 0;
  uint32_t q_key = 0;
  uint16_t member = 0;  // of barriers: rank among the children of the leaf; of counters: number of the client

  ServiceOperation operation = ServiceOperation::kBarrier;
  uint16_t cells = 1;   // which requests use in turn, from 0
  uint64_t addend = 1;  // a compare-and-swap is tried until it has added that

  roce::MacAddress source_mac{};
  roce::MacAddress destination_mac{};
  roce::IpAddress source_ip;
  roce::IpAddress destination_ip;  // of the leaf
  uint16_t source_udp_port = 0xC000;
};

// Throws std::invalid_argument naming the first parameter that is out of range.
void check(const ServiceConfig& config);

#define WEFT_SERVICE_COUNTERS(STATISTIC)                                                  \
  STATISTIC(uint64_t, requests_sent, "retransmissions included")                          \
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

class ServiceClient : public RequestClient {
 public:
  // `pool` and `executor` outlive the client. Throws as check().
  ServiceClient(const ServiceConfig& config, PacketPool& pool, ScheduleExecutor& executor);

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PulledPacket last_pulled() const override;

  // Of all requests, in their order; those without an answer are zeros.
  const std::vector<ServiceRecord>& records() const { return records_; }
  const ServiceCounters& counters() const { return counters_; }

 protected:
  void begin(TimePs now, uint32_t request) override { records_[request].started_ps = now; }
  PacketPtr compose(uint32_t sequence, uint32_t request) override;

 private:
  uint16_t cell_of(uint32_t request) const { return static_cast<uint16_t>(request % config_.cells); }

  const ServiceConfig config_;
  PacketPool& pool_;
  roce::RoceHeaders headers_;  // of the next request
  roce::HeaderTemplate template_;
  ServiceCounters counters_;
  // By cell: what a compare-and-swap takes the value to be. It is the same for as long as one is under way.
  std::vector<uint64_t> expected_;
  std::vector<ServiceRecord> records_;
};

}  // namespace weft

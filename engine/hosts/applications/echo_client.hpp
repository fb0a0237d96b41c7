// What `ping` does: ICMP echo requests at an interval, and how long each took to be answered.
#pragma once

#include <cstdint>
#include <vector>

#include "hosts/applications/application.hpp"

namespace weft {

struct EchoConfig {
  IpAddress destination;
  uint32_t count = 1;  // at most 65,535, as sequence numbers have 16 bits
  TimePs interval_ps = 0;
  TimePs timeout_ps = 0;  // after which a request has been lost
  size_t data_bytes = 56;
  uint8_t dscp = 0;
  uint8_t hop_limit = kDefaultHopLimit;
};

enum class EchoOutcome : uint8_t { kLost, kAnswered, kTimeExceeded, kUnreachable, kNotSent };

struct EchoRecord {
  TimePs sent_ps = 0;
  TimePs round_trip_ps = 0;  // 0: nobody has answered
  EchoOutcome outcome = EchoOutcome::kLost;
  uint8_t hop_limit = 0;  // of the answer
  IpAddress responder;    // who has answered or reported
};

// Ends when all requests are answered, or the last ones have had their time.
class EchoClient final : public Application, EchoReceiver {
 public:
  // Throws std::invalid_argument for a count or a time out of range.
  EchoClient(IpStack& stack, ScheduleExecutor& executor, const EchoConfig& config);
  ~EchoClient() override { close(); }

  // In the order in which they were sent.
  const std::vector<EchoRecord>& records() const { return records_; }
  uint64_t duplicates() const { return duplicates_; }

 private:
  void begin(TimePs now) override;
  void on_timer(TimePs now) override;
  void release() override { stack().release_echo(identifier_); }
  void on_echo_reply(TimePs now, const IpPacket& packet, uint16_t sequence) override;
  void on_error(TimePs now, const IcmpError& error, uint16_t sequence) override;
  void on_unsent(uint16_t sequence);
  void settle(TimePs now, uint16_t sequence, EchoOutcome outcome, uint8_t hop_limit,
              const IpAddress& responder = {});
  void send_next(TimePs now);
  void arm_next(TimePs now);

  const EchoConfig config_;
  const uint16_t identifier_;
  std::vector<EchoRecord> records_;
  uint64_t duplicates_ = 0;
};

}  // namespace weft

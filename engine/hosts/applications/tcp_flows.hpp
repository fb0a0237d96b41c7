// A host's part in TCP flows: connections that it opens to send, and those that it accepts to receive.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "congestion/parameters.hpp"
#include "hosts/applications/application.hpp"
#include "hosts/tcp/tcp_protocol.hpp"
#include "tcp/connection.hpp"

namespace weft {

struct TcpFlowConfig {
  uint32_t flow = 0;  // its number, which both ends name
  // Where the flow's sender goes; from where its receiver takes it, all zeros: from anywhere.
  IpAddress peer;
  uint16_t port = 0;         // of the receiver
  uint16_t source_port = 0;  // of the sender; to a receiver, 0: any
  TimePs start_ps = 0;       // after the application's
  uint64_t size_bytes = 0;   // 0: as much as goes in duration_ps
  TimePs duration_ps = 0;
  uint8_t dscp = 0;
  TimePs send_jitter_ps = 0;  // what acknowledgements allow to be sent leaves up to so much later
  std::string congestion_control = "cubic";
  CongestionParameters parameters;
  tcp::ConnectionConfig connection;  // but for ports and the first sequence number
};

// One end of a flow, as it was when it ended or is.
struct TcpFlowRecord {
  uint32_t flow = 0;
  bool sends = false;
  TimePs started_ps = 0;
  TimePs finished_ps = 0;        // the last acknowledgement, or the last byte; 0: not yet
  uint64_t bytes = 0;            // acknowledged, or received in order
  uint64_t spoilt_segments = 0;  // received with other bytes than were sent
  TimePs smoothed_round_trip_ps = 0;
  tcp::SenderCounters sender;
  tcp::ReceiverCounters receiver;
};

struct TcpWindowSample {
  uint32_t flow = 0;
  TimePs time_ps = 0;
  uint64_t window_bytes = 0;
  uint64_t in_flight_bytes = 0;
  TimePs smoothed_round_trip_ps = 0;
  double marked_share = 0;  // DCTCP's alpha
};

// Ends when all flows of both kinds have; fails with the first connection that ends otherwise.
class TcpFlows final : public Application, TcpListener {
 public:
  // `sample_interval_ps`: windows are sampled no more often; 0: not at all. Throws std::invalid_argument for
  // a port that is taken or no congestion control.
  TcpFlows(IpStack& stack, ScheduleExecutor& executor, TcpProtocol& protocol,
           std::vector<TcpFlowConfig> outgoing, std::vector<TcpFlowConfig> incoming,
           TimePs sample_interval_ps);
  ~TcpFlows() override;

  std::vector<TcpFlowRecord> records() const;
  const std::vector<TcpWindowSample>& samples() const { return samples_; }

 private:
  class End;

  void begin(TimePs now) override;
  void on_timer(TimePs now) override;
  void release() override;
  TcpReceiver* accept(const IpPacket& packet, const tcp::Segment& syn) override;
  void ended(const End& end);
  void sample(TimePs now, End& end);

  TcpProtocol& protocol_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<TcpWindowSample> samples_;
  TimePs sample_interval_ps_;
};

}  // namespace weft

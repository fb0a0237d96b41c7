// Datagrams at a constant rate, all the time or in bursts, to a UdpSink.
#pragma once

#include <cstdint>
#include <string>

#include "hosts/applications/application.hpp"
#include "hosts/applications/udp_datagrams.hpp"
#include "time/random.hpp"

namespace weft {

enum class BurstDistribution : uint8_t { kNone, kExponential, kPareto };

struct UdpSourceConfig {
  IpAddress destination;
  uint16_t port = 0;
  uint64_t rate_bps = 0;    // of Ethernet frames, while it sends
  size_t packet_bytes = 0;  // of the IP packet
  TimePs duration_ps = 0;
  uint8_t dscp = 0;
  uint8_t ecn = 0;
  // Mean lengths of the periods in which it sends and does not. Pareto's have a shape above 1, so that there
  // is a mean.
  BurstDistribution bursts = BurstDistribution::kNone;
  TimePs mean_on_ps = 0;
  TimePs mean_off_ps = 0;
  double pareto_shape = 1.5;
  std::string stream;  // of random numbers
};

// Ends when the sink has confirmed the end, as iperf 2 does: its last datagram says so and is sent again, at
// longer and longer intervals, up to kMostEnds times.
class UdpSource final : public Application, UdpReceiver {
 public:
  static constexpr int kMostEnds = 12;

  // Throws std::invalid_argument for values out of range.
  UdpSource(IpStack& stack, ScheduleExecutor& executor, const UdpSourceConfig& config);
  ~UdpSource() override { close(); }

  // Datagrams with data that were to be sent, and those of them that have never left the host.
  uint64_t packets() const { return sequence_; }
  uint64_t not_sent_packets() const { return not_sent_packets_; }
  bool was_confirmed() const { return was_confirmed_; }

 private:
  void begin(TimePs now) override;
  void on_timer(TimePs now) override;
  void release() override { stack().release_udp(own_port_); }
  void on_datagram(TimePs now, const Datagram& datagram) override;
  void on_error(TimePs now, const IcmpError& error) override;
  TimePs draw(TimePs mean_ps);
  void send_data(TimePs now);
  void send_end(TimePs now);
  bool send(TimePs now, UdpDatagramKind kind, size_t payload_bytes);

  const UdpSourceConfig config_;
  const uint16_t own_port_;
  BitRate rate_;
  Rng rng_;
  size_t payload_bytes_;
  TimePs stop_ps_ = 0;
  TimePs on_until_ps_ = kNever;
  uint64_t sequence_ = 0;
  uint64_t not_sent_packets_ = 0;
  int ends_ = 0;
  bool was_confirmed_ = false;
};

}  // namespace weft

// Takes the datagrams of one UdpSource, and counts and times them.
#pragma once

#include <cstdint>
#include <vector>

#include "hosts/applications/application.hpp"
#include "hosts/applications/udp_datagrams.hpp"
#include "observe/statistics.hpp"

namespace weft {

#define WEFT_UDP_SINK_COUNTERS(STATISTIC)                                                          \
  STATISTIC(uint64_t, packets, "datagrams, each counted once")                                     \
  STATISTIC(uint64_t, ip_bytes, "of their IP packets")                                             \
  STATISTIC(uint64_t, duplicate_packets, "that had come before")                                   \
  STATISTIC(uint64_t, late_packets, "sent before one that had come already (RFC 4737: reordered)") \
  STATISTIC(uint64_t, marked_packets, "with CE in the IP header")                                  \
  STATISTIC(uint64_t, foreign_packets, "of nobody's that this sink serves")

struct UdpSinkCounters {
  WEFT_STATISTICS(UdpSinkCounters, WEFT_UDP_SINK_COUNTERS)
};

// Has nothing to do of its own, so it ends where it begins; it goes on taking datagrams until it is closed.
class UdpSink final : public Application, UdpReceiver {
 public:
  // Numbers from here on are nobody's: the sink keeps a bit for each.
  static constexpr uint64_t kMostDatagrams = uint64_t{1} << 30;

  // Throws std::invalid_argument if the port is taken.
  UdpSink(IpStack& stack, ScheduleExecutor& executor, const IpAddress& source, uint16_t port);
  ~UdpSink() override { close(); }

  const UdpSinkCounters& counters() const { return counters_; }
  // One-way, of each datagram that is counted, in the order of their arrival.
  const std::vector<TimePs>& delays_ps() const { return delays_ps_; }
  TimePs last_ps() const { return last_ps_; }

 private:
  void begin(TimePs /*now*/) override { finish(); }
  void on_timer(TimePs /*now*/) override {}
  void release() override { stack().release_udp(port_); }
  void on_datagram(TimePs now, const Datagram& datagram) override;
  void answer_end(const Datagram& datagram, const UdpDatagramHeader& header);

  const IpAddress source_;
  const uint16_t port_;
  UdpSinkCounters counters_;
  std::vector<bool> seen_;
  std::vector<TimePs> delays_ps_;
  TimePs last_ps_ = 0;
};

}  // namespace weft

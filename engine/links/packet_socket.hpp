// What receives from an AF_PACKET socket and sends through it, in batches.
#pragma once

#include <linux/if_packet.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "links/bound_socket.hpp"
#include "links/delay_line.hpp"
#include "links/node.hpp"
#include "observe/statistics.hpp"
#include "time/engine.hpp"

namespace weft {

class PcapWriter;

#define WEFT_PACKET_SOCKET_COUNTERS(STATISTIC)                                                            \
  STATISTIC(uint64_t, received_packets, "from the interface")                                             \
  STATISTIC(uint64_t, received_bytes, "from the interface")                                               \
  STATISTIC(uint64_t, ring_dropped_packets, "the kernel found the ring full")                             \
  STATISTIC(uint64_t, truncated_packets, "dropped: longer than a ring slot")                              \
  STATISTIC(uint64_t, transmitted_packets, "out of the interface")                                        \
  STATISTIC(uint64_t, transmitted_bytes, "out of the interface")                                          \
  STATISTIC(uint64_t, oversize_packets, "dropped: longer than the interface's MTU")                       \
  STATISTIC(uint64_t, runt_packets, "dropped: shorter than an Ethernet header")                           \
  STATISTIC(uint64_t, unfinished_checksum_packets,                                                        \
            "received with a checksum that the sender left to its adapter (transmit checksum offload is " \
            "on), and passed on: their receiver will refuse them")                                        \
  STATISTIC(uint64_t, interface_down_packets, "dropped")                                                  \
  STATISTIC(uint64_t, no_buffer_packets, "dropped: the kernel had no memory")                             \
  STATISTIC(uint64_t, interface_dropped_packets,                                                          \
            "dropped by the interface after the kernel had taken them: it was not active yet, or the "    \
            "receiver's backlog was full")                                                                \
  STATISTIC(uint64_t, send_error_packets, "dropped for any other reason")

struct PacketSocketCounters {
  WEFT_STATISTICS(PacketSocketCounters, WEFT_PACKET_SOCKET_COUNTERS)
};

// Towards the network it is a Node: what it receives is sent out of the interface, in batches. Frames from
// the network go to the connected node, dated with the kernel's receive time, their VLAN tag put back; the
// socket never sees its own frames. Real clock only.
class PacketSocket : public Node, public Pollable {
 public:
  PacketSocket(Engine& engine, PacketSocketConfig config, std::unique_ptr<BoundSocket> socket);
  ~PacketSocket() override;
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  // The socket for the constructor, which needs no lock of the engine's. Throws as BoundSocket does, and
  // std::logic_error if the engine's clock is not real.
  static std::unique_ptr<BoundSocket> open(const Engine& engine, const PacketSocketConfig& config);

  // Where received frames go. Until this is called they stay in the ring.
  void connect(Node& node, int port);
  void receive(int port, PacketPtr packet) override;
  // Parts with the socket, for the caller to close; null if that has been done. Packets sent afterwards are
  // counted as interface_down_packets.
  std::unique_ptr<BoundSocket> detach();

  Engine& engine() override { return engine_; }
  const std::string& interface() const { return config_.interface; }
  int mtu_bytes() const { return mtu_bytes_; }
  // Brought up to date with the kernel's statistics.
  const PacketSocketCounters& counters();
  void reset_counters();
  // Records frames received from the interface and frames sent to it, in one file or two; null stops.
  void set_capture(std::shared_ptr<PcapWriter> received, std::shared_ptr<PcapWriter> sent);

  int file_descriptor() const override { return socket_ == nullptr ? -1 : socket_->file_descriptor(); }
  TimePs poll() override;
  void flush() override;

 private:
  void read_statistics();
  TimePs take_frame(const tpacket2_hdr& header);
  void count_transmit_error(int error);

  Engine& engine_;
  PacketSocketConfig config_;
  int mtu_bytes_ = 0;
  std::unique_ptr<BoundSocket> socket_;
  DelayLine delay_line_;
  std::vector<PacketPtr> transmit_batch_;
  PacketSocketCounters counters_;
  int64_t realtime_minus_monotonic_ns_ = 0;
  uint64_t interface_dropped_before_ = 0;
  uint64_t refused_by_interface_ = 0;  // since then
  std::shared_ptr<PcapWriter> sent_capture_;
};

}  // namespace weft

// An AF_PACKET socket on an interface of the process's network namespace: mapped receive ring, batched
// transmission.
#pragma once

#include <linux/if_packet.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "links/delay_line.hpp"
#include "links/node.hpp"
#include "time/engine.hpp"

namespace weft {

class PacketRing;
class PcapWriter;

struct PacketSocketConfig {
  std::string interface;
  bool promiscuous = true;
  uint64_t ring_bytes = 2ull * 1024 * 1024;
};

struct PacketSocketCounters {
  uint64_t received_packets = 0;
  uint64_t received_bytes = 0;
  uint64_t ring_dropped_packets = 0;  // the kernel found the ring full
  uint64_t truncated_packets = 0;     // longer than a ring slot, dropped
  // Received with a checksum that the sender left to its card (transmit checksum offload is on): passed on as
  // they are, so their receiver will refuse them.
  uint64_t unfinished_checksum_packets = 0;
  uint64_t transmitted_packets = 0;
  uint64_t transmitted_bytes = 0;
  uint64_t oversize_packets = 0;        // longer than the interface's MTU, dropped
  uint64_t runt_packets = 0;            // shorter than an Ethernet header, dropped
  uint64_t interface_down_packets = 0;  // dropped
  uint64_t no_buffer_packets = 0;       // dropped
  uint64_t send_error_packets = 0;      // dropped for any other reason
  uint64_t transmit_dropped_packets() const {
    return oversize_packets + runt_packets + interface_down_packets + no_buffer_packets + send_error_packets;
  }
};

// Towards the network it is a Node: what it receives is sent out of the interface, in batches. Frames from
// the network go to the connected node, dated with the kernel's receive time, their VLAN tag put back; the
// socket never sees its own frames. Real clock only.
class PacketSocket : public Node, public Pollable {
 public:
  // Throws std::system_error (naming the interface) if it can't be opened, std::invalid_argument for a bad
  // name or ring size.
  PacketSocket(Engine& engine, PacketSocketConfig config);
  ~PacketSocket() override;
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  // Where received frames go. Until this is called they stay in the ring.
  void connect(Node& node, int port);
  void receive(int port, PacketPtr packet) override;
  // Idempotent; packets sent afterwards are counted as interface_down_packets.
  void close();

  Engine& engine() override { return engine_; }
  const std::string& interface() const { return config_.interface; }
  int mtu_bytes() const { return mtu_bytes_; }
  // Brought up to date with the kernel's statistics.
  const PacketSocketCounters& counters();
  void reset_counters();
  // Records frames received from the interface and frames sent to it, in one file or two; null stops.
  void set_capture(std::shared_ptr<PcapWriter> received, std::shared_ptr<PcapWriter> sent);

  int file_descriptor() const override { return fd_; }
  TimePs poll() override;
  void flush() override;

 private:
  void open();
  void read_statistics();
  TimePs take_frame(const tpacket2_hdr& header);
  void count_transmit_error(int error);
  void release();

  Engine& engine_;
  PacketSocketConfig config_;
  int fd_ = -1;
  int interface_index_ = 0;
  int mtu_bytes_ = 0;
  std::unique_ptr<PacketRing> ring_;
  DelayLine line_;
  std::vector<PacketPtr> transmit_batch_;
  PacketSocketCounters counters_;
  int64_t realtime_minus_monotonic_ns_ = 0;
  std::shared_ptr<PcapWriter> sent_capture_;
};

}  // namespace weft

// An AF_PACKET socket that is bound to an interface of the process's network namespace, with its receive
// ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "links/interface_drops.hpp"
#include "links/packet_ring.hpp"

namespace weft {

// The kernel takes a frame's VLAN tag off; the ring has room for it to be put back.
constexpr size_t kVlanTagBytes = 4;

struct PacketSocketConfig {
  std::string interface;
  bool promiscuous = true;
  uint64_t ring_bytes = 2ull * 1024 * 1024;
};

// To open and to close one, the kernel waits until no packet is on its way past it: tens of milliseconds.
// That is why it is apart from what receives and sends (links/packet_socket.hpp): threads may open and close
// many at a time.
class BoundSocket {
 public:
  // Throws std::system_error (naming the interface) if it can't be opened, std::invalid_argument for a bad
  // name or ring size.
  explicit BoundSocket(const PacketSocketConfig& config);
  ~BoundSocket();
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  int file_descriptor() const { return fd_; }
  int mtu_bytes() const { return mtu_bytes_; }
  PacketRing& ring() { return *ring_; }
  // Frames that the interface has dropped after the kernel had taken them, whoever sent them.
  uint64_t interface_dropped_packets() const { return drops_->of(interface_index_); }

 private:
  void open(const PacketSocketConfig& config);
  void release();

  int fd_ = -1;
  int interface_index_ = 0;
  int mtu_bytes_ = 0;
  std::unique_ptr<PacketRing> ring_;
  std::shared_ptr<InterfaceDrops> drops_;
};

}  // namespace weft

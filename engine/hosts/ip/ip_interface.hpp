// An interface of a host's IP stack: a port of its NIC with its neighbours and queues. Only the stack's own
// files include it.
#pragma once

#include <algorithm>
#include <map>
#include <memory>

#include "hosts/ip/frame_queue.hpp"
#include "hosts/ip/ip_packet.hpp"
#include "hosts/ip/ip_stack.hpp"
#include "hosts/ip/neighbours.hpp"
#include "hosts/nic.hpp"
#include "packets/frame_dscp.hpp"

namespace weft {

// What finds neighbours goes before all data, which must not keep it waiting.
constexpr int kNeighbourClass = roce::kDataClasses - 1;

// As network cards do that trust DSCPs: the upper three bits are the class.
inline int data_class_of(uint8_t dscp) { return std::min(dscp >> 3, roce::kDataClasses - 1); }
// That of a frame; 0 of one that is no IP.
inline int data_class_of(const Packet& frame) { return data_class_of(dscp_of(frame.bytes()).value_or(0)); }

struct IpStack::Interface final : Neighbours::Owner {
  Interface(IpStack& stack_, int number_, const IpInterfaceConfig& config_)
      : stack(stack_),
        number(number_),
        config(config_),
        nic_port(stack.nic_.port_config(number_)),
        neighbours(stack.engine_, *this, config_.neighbours) {}

  const IpAddress* own_address(bool is_ipv6) const {
    for (const IpAddress& address : nic_port.addresses)
      if (address.is_ipv6 == is_ipv6) return &address;
    return nullptr;
  }
  bool owns(const IpAddress& address) const {
    return std::find(nic_port.addresses.begin(), nic_port.addresses.end(), address) !=
           nic_port.addresses.end();
  }
  // Whether a neighbour may have said this of itself; if not, it is counted.
  bool believes(const IpAddress& address, const MacAddress& mac);
  bool hears(const MacAddress& mac) const { return mac == nic_port.mac || (mac[0] & 1) != 0; }

  void ask_for(const IpAddress& address) override;
  void send_to(const MacAddress& mac, PacketPtr packet, bool is_ipv6) override;
  void give_up(PacketPtr packet) override { stack.give_up(*packet); }
  void evicted() override { ++stack.counters_.neighbours_evicted; }
  void changed() override { ++stack.counters_.neighbours_changed; }
  void refused() override { ++stack.counters_.neighbours_refused; }
  bool send_icmpv6(const IpAddress& destination, const MacAddress& mac, const IpAddress& target, uint8_t type,
                   uint32_t flags, uint8_t option);

  IpStack& stack;
  const int number;
  const IpInterfaceConfig config;
  const NicPortConfig& nic_port;
  Neighbours neighbours;
  std::map<int, std::unique_ptr<FrameQueue>> queues;  // by class
};

}  // namespace weft

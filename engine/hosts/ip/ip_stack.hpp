// The IP stack of a host, for all frames that are not RoCEv2's. It does what a kernel does: ARP and neighbour
// discovery, routes, ICMP echo and errors, UDP ports. Whatever else speaks IP registers for its protocol
// number (register_protocol), is given packets, and sends with send(); timers are the engine's
// (time/engine.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hosts/ip/frame_queue.hpp"
#include "hosts/ip/ip_packet.hpp"
#include "hosts/ip/neighbours.hpp"
#include "hosts/nic.hpp"
#include "observe/counted_drops.hpp"
#include "observe/statistics.hpp"

namespace weft {

#define WEFT_IP_COUNTERS(STATISTIC)                                                                         \
  STATISTIC(TrafficCounter, received, "frames that the stack has taken")                                    \
  STATISTIC(TrafficCounter, queued, "frames that were queued at the NIC")                                   \
  STATISTIC(uint64_t, echoes_answered, "ICMP echo requests that were answered")                             \
  STATISTIC(uint64_t, errors_sent, "ICMP errors that were sent")                                            \
  STATISTIC(uint64_t, foreign_packets, "not to this host's MAC or address, nor to a group of its own")      \
  STATISTIC(uint64_t, malformed_packets, "cut, or with a header that makes no sense")                       \
  STATISTIC(uint64_t, bad_checksum_packets, "with a wrong checksum")                                        \
  STATISTIC(uint64_t, fragment_packets, "parts of a packet; the stack puts none together")                  \
  STATISTIC(uint64_t, unknown_packets, "of an EtherType or protocol that nobody has registered for")        \
  STATISTIC(uint64_t, closed_port_packets, "to a UDP port that nobody listens at")                          \
  STATISTIC(uint64_t, no_route_packets, "not sent: no route, or no source address of that IP version")      \
  STATISTIC(uint64_t, too_big_packets, "not sent: larger than the link's MTU")                              \
  STATISTIC(uint64_t, queue_full_packets, "not sent: the queue at the NIC was full")                        \
  STATISTIC(TrafficCounter, unresolved, "not sent: nobody has answered for the next hop's address")         \
  STATISTIC(uint64_t, neighbours_evicted, "neighbours that were forgotten because there were too many")     \
  STATISTIC(uint64_t, neighbours_changed, "messages that gave a known neighbour another MAC")               \
  STATISTIC(uint64_t, neighbours_refused,                                                                   \
            "messages that nothing was learned from: another MAC of a static neighbour, or in the name of " \
            "this host or a group")

struct IpCounters {
  WEFT_STATISTICS(IpCounters, WEFT_IP_COUNTERS)
};

// Why a frame that arrived was dropped.
#define WEFT_IP_DROPS(DROP)                                \
  DROP(kForeign, "foreign", foreign_packets)               \
  DROP(kMalformed, "malformed", malformed_packets)         \
  DROP(kBadChecksum, "bad_checksum", bad_checksum_packets) \
  DROP(kFragment, "fragment", fragment_packets)            \
  DROP(kUnknown, "unknown", unknown_packets)               \
  DROP(kClosedPort, "closed_port", closed_port_packets)
WEFT_COUNTED_DROPS(IpDrop, kIpDrops, IpCounters, WEFT_IP_DROPS)

struct IpInterfaceConfig {
  uint32_t mtu_bytes = 1500;    // of IP packets
  size_t queue_packets = 1000;  // in each class, as Linux's txqueuelen
  size_t neighbours = 1024;     // that are known or asked for, without static ones; Linux's gc_thresh3
};

// A prefix and how it is reached: by way of a gateway, or, where that is unset, on the link itself.
struct IpRoute {
  IpAddress prefix;
  int prefix_bits = 0;
  IpAddress gateway;
  int interface = 0;
};

// A UDP datagram that has arrived.
struct Datagram {
  const IpPacket& packet;
  uint16_t source_port;
  uint16_t destination_port;
  std::span<const uint8_t> payload;  // what can be read of it
  size_t payload_bytes;
};

struct UdpReceiver {
  virtual ~UdpReceiver() = default;
  virtual void on_datagram(TimePs now, const Datagram& datagram) = 0;
  // About a datagram that was sent from the receiver's port.
  virtual void on_error(TimePs /*now*/, const IcmpError& /*error*/) {}
};

struct EchoReceiver {
  virtual ~EchoReceiver() = default;
  virtual void on_echo_reply(TimePs now, const IpPacket& packet, uint16_t sequence) = 0;
  virtual void on_error(TimePs /*now*/, const IcmpError& /*error*/, uint16_t /*sequence*/) {}
};

// Sees every frame that is not RoCEv2's, before the stack does, whatever its MAC or EtherType.
struct FrameTap {
  virtual ~FrameTap() = default;
  virtual void on_frame(TimePs now, int interface, Packet& frame) = 0;
};

class IpStack final : public NonRoceReceiver {
 public:
  // `nic` outlives the stack. Its ports become interfaces by add_interface() or not.
  explicit IpStack(Nic& nic);
  ~IpStack() override;
  IpStack(const IpStack&) = delete;
  IpStack& operator=(const IpStack&) = delete;

  Engine& engine() { return engine_; }
  PacketPool& packets() { return engine_.packets(); }
  const std::string& name() const { return nic_.name(); }

  // The NIC's port of that number becomes an interface, with its MAC and addresses. Throws
  // std::invalid_argument for a port there is not, or that is one already.
  void add_interface(int port, const IpInterfaceConfig& config);
  // Of routes to an address the longest prefix counts, and of equal ones the first. Throws
  // std::invalid_argument for an interface there is not, or too many bits.
  void add_route(const IpRoute& route);
  void add_neighbour(int interface, const IpAddress& address, const MacAddress& mac);
  // Neighbours but for static entries are unknown again.
  void forget_neighbours();

  // --- for protocols

  // Throws std::invalid_argument if the number is taken. Null gives it back.
  void register_protocol(uint8_t number, IpProtocol* protocol);
  // A packet of so many bytes, not initialised, with room for all headers before them.
  PacketPtr allocate(size_t payload_bytes) { return packets().allocate(payload_bytes); }
  // Sends a packet that holds the payload of IP. False: it was dropped, and counted.
  bool send(IpHeader header, PacketPtr payload);
  // The address that a packet to there is sent from; nothing without a route.
  std::optional<IpAddress> source_for(const IpAddress& destination) const;
  // Largest payload of IP on the way's first link; 0 without a route.
  size_t largest_payload_bytes(const IpAddress& destination) const;
  // Packets that wait at the interface to there, in the class of a DSCP.
  size_t waiting_packets(const IpAddress& destination, uint8_t dscp) const;

  // The ephemeral ports (RFC 6335, 6), from one on that the NIC's entropy seed draws, and round to it again.
  static constexpr uint32_t kEphemeralPorts = 0x4000;
  uint16_t ephemeral_port(uint32_t number) const;

  // --- UDP

  // The first ephemeral port that is free if `port` is 0; returns the port. Throws std::invalid_argument if
  // it is taken or RoCEv2's, or none is left.
  uint16_t bind_udp(uint16_t port, UdpReceiver& receiver);
  void release_udp(uint16_t port);
  // Gives up what this port has sent and still waits for the MAC of a next hop: its receiver's on_error is
  // called.
  void withdraw_udp(uint16_t port);
  // Puts a UDP header with its checksum before a payload, and sends it. `header.protocol` is set.
  bool send_udp(IpHeader header, uint16_t source_port, uint16_t destination_port, PacketPtr payload);

  // --- ICMP echo

  // Replies and errors of this identifier, the least that is free; returns it. Throws std::invalid_argument
  // if none is left.
  uint16_t bind_echo(EchoReceiver& receiver);
  void release_echo(uint16_t identifier);
  // Gives up its requests that still wait for the MAC of a next hop, as withdraw_udp().
  void withdraw_echo(uint16_t identifier);
  // `payload` is the echo's data.
  bool send_echo(IpHeader header, uint16_t identifier, uint16_t sequence, PacketPtr payload);

  // --- frames as they are

  // Each sees every frame. While there is one, nobody is told that a port is closed: who sees all frames may
  // be its user. A tap may remove itself as it sees a frame.
  void add_tap(FrameTap& tap) { taps_.push_back(&tap); }
  void remove_tap(FrameTap& tap) { std::erase(taps_, &tap); }
  // In the class of the packet's DSCP, 0 for what is no IP. False: dropped, and counted.
  bool send_frame(int interface, PacketPtr frame);

  void receive_non_roce(int port, PacketPtr packet) override;

  const IpCounters& counters() const { return counters_; }
  void reset_counters() { counters_ = IpCounters(); }

 private:
  struct Interface;
  enum class Outcome : uint8_t {
    kTaken,
    kForeign,
    kMalformed,
    kBadChecksum,
    kFragment,
    kUnknown,
    kClosedPort
  };

  Interface& interface_at(int number);
  const IpRoute* route_to(const IpAddress& destination) const;
  FrameQueue& queue_of(Interface& interface, int data_class);
  bool queue(Interface& interface, PacketPtr frame, int data_class);
  Outcome take(Interface& interface, const Packet& frame);
  Outcome take_arp(Interface& interface, const Packet& frame);
  Outcome take_ip(Interface& interface, const Packet& frame, bool is_ipv6);
  Outcome take_icmp(Interface& interface, const IpPacket& packet);
  Outcome take_error(const IpPacket& packet, IcmpError error);
  // To whoever has sent the packet that it is about.
  Outcome deliver_error(const IcmpError& error);
  // A packet without an Ethernet header that waits for its next hop's MAC in vain.
  void give_up(const Packet& packet);
  void withdraw(const std::function<bool(const IcmpError&)>& is_meant);
  Outcome take_neighbour_message(Interface& interface, const IpPacket& packet);
  Outcome take_udp(const IpPacket& packet);
  void answer_echo(const IpPacket& packet);
  void send_port_unreachable(const IpPacket& packet);
  // Sets the source of a packet that has none yet. False: there is no route, which is counted.
  bool set_source(IpHeader& header);
  bool send_icmp(IpHeader header, uint8_t type, uint8_t code, uint32_t rest, PacketPtr payload);
  void drop(IpDrop reason, const Packet& frame);

  Engine& engine_;
  Nic& nic_;
  std::vector<std::unique_ptr<Interface>> interfaces_;  // by port of the NIC; null where there is none
  std::vector<IpRoute> routes_;                         // longest prefix first
  std::map<uint8_t, IpProtocol*> protocols_;
  std::unordered_map<uint16_t, UdpReceiver*> udp_;
  std::unordered_map<uint16_t, EchoReceiver*> echo_;
  uint32_t first_ephemeral_port_ = 0;
  uint32_t least_free_echo_ = 1;  // no identifier below it is free
  std::vector<FrameTap*> taps_;
  bool was_tapped_ = false;  // the frame that is being received
  IpCounters counters_;
  uint16_t next_identification_ = 1;
};

}  // namespace weft

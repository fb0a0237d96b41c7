// IP packets of a host's own stack, as protocols on top of it see and send them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packets/packet.hpp"
#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft {

using roce::IpAddress;
using roce::MacAddress;

constexpr uint16_t kEtherTypeArp = 0x0806;

// Protocol numbers (IANA).
constexpr uint8_t kProtocolIcmp = 1;
constexpr uint8_t kProtocolTcp = 6;
constexpr uint8_t kProtocolUdp = 17;
constexpr uint8_t kProtocolIcmpv6 = 58;

constexpr uint8_t kDefaultHopLimit = 64;

// What a sender says of a packet; lengths and checksums are the stack's.
struct IpHeader {
  IpAddress source;  // all zeros: of the interface by which it leaves
  IpAddress destination;
  uint8_t protocol = 0;
  uint8_t hop_limit = kDefaultHopLimit;
  uint8_t dscp = 0;
  uint8_t ecn = 0;
};

// A packet that has arrived; its bytes are valid during the call only.
struct IpPacket : IpHeader {
  int interface = 0;
  std::span<const uint8_t> ip;       // the IP header with its options, and what of the payload can be read
  std::span<const uint8_t> payload;  // what can be read of it
  size_t payload_bytes = 0;          // more than that if the rest is virtual: zeros
  bool is_group = false;             // not to an address of this host alone
  TimePs received_ps = 0;
};

// An ICMP error about a packet that this host has sent (RFC 792, RFC 4443).
struct IcmpError {
  IpAddress reporter;
  uint8_t type = 0;
  uint8_t code = 0;
  bool is_time_exceeded = false;
  bool is_port_unreachable = false;
  bool is_unsent = false;            // the host itself says so: the packet has never left it
  IpHeader sent;                     // of the packet that it is about
  std::span<const uint8_t> payload;  // the beginning of that packet's payload
};

// What is on top of IP: registered with a stack for a protocol number.
struct IpProtocol {
  virtual ~IpProtocol() = default;
  virtual void on_packet(TimePs now, const IpPacket& packet) = 0;
  virtual void on_error(TimePs /*now*/, const IcmpError& /*error*/) {}
};

inline bool is_unset(const IpAddress& address) {
  for (const uint8_t byte : address.bytes)
    if (byte != 0) return false;
  return true;
}

}  // namespace weft

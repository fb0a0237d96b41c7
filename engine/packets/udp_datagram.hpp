// UDP datagrams of other transports than RoCEv2, read by the same code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"

namespace weft::roce {

struct UdpDatagram {
  const uint8_t* header = nullptr;  // UDP's
  size_t bytes = 0;                 // from there to the end of the IP packet, or of the frame if that was cut
  size_t readable_bytes = 0;        // of them, the others are virtual
  size_t length_bytes = 0;          // as UDP's header has it
};

// Reads Ethernet, IP and UDP of a frame into `out`, a new one: addresses, code points, UDP's source port.
// Returns false, with `out` in any state, unless it is a valid IP packet that carries UDP to this port. UDP's
// length and checksum are not looked at.
bool parse_datagram(const Packet& packet, uint16_t port, ParsedPacket& out, UdpDatagram& datagram);
// Whether UDP's checksum, if there is one, is right; virtual bytes are zeros.
bool has_valid_checksum(const ParsedPacket& packet, const UdpDatagram& datagram);
// What belongs into UDP's header, whose checksum is 0, as a checksum.
uint16_t udp_checksum(const RoceHeaders& headers, const uint8_t* udp, size_t readable_bytes,
                      size_t length_bytes);

}  // namespace weft::roce

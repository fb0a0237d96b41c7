// Builds and reads MRC packets. roce::parse_frame() and roce::parse_packet() parse them as any RoCEv2 packet
// and refuse malformed ones; load_headers() then reads what only MRC has from the frame.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packets/mrc_formats.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"

namespace weft::mrc {

// What follows the BTH of an MRC opcode: METH, TSETH if there is one, RETH and immediate of a write; the
// headers of its own of any other.
size_t extension_bytes(uint8_t opcode, bool has_timestamp);

// MRC's headers of a packet that was parsed without an error and has roce::kIsMrc. Of those that the opcode
// does not have the defaults are left.
Headers load_headers(const roce::ParsedPacket& packet);

// As the functions of packets/roce_codec.hpp with the same names. Of `headers`, RETH, immediate and AETH are
// those of the packet; `solicited`, `migrated`, `fecn` and `becn` of the BTH are bits that MRC reserves and
// are written as 0. They throw std::invalid_argument for opcodes that are not MRC's, values that do not fit
// their field or are not valid (m, op, a trimmed packet's DSCP), and endpoint operations to another queue
// pair than kEndpointQueuePair.
size_t frame_bytes(const roce::RoceHeaders& headers, const Headers& mrc, size_t payload_bytes);
void write_frame(const roce::RoceHeaders& headers, const Headers& mrc, const uint8_t* payload,
                 size_t payload_bytes, uint8_t* out);
PacketPtr build_packet(PacketPool& pool, const roce::RoceHeaders& headers, const Headers& mrc,
                       const uint8_t* payload = nullptr, size_t payload_bytes = 0);
// With payload, pad and iCRC as virtual bytes. Nothing checks its iCRC.
PacketPtr build_as_length(PacketPool& pool, const roce::RoceHeaders& headers, const Headers& mrc,
                          size_t payload_bytes);

}  // namespace weft::mrc

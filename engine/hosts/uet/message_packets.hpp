// Packets of messages, as initiators of all services build them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hosts/rc_config.hpp"
#include "hosts/uet/messages.hpp"
#include "packets/packet.hpp"
#include "packets/uet_frame.hpp"
#include "paths/path_choice.hpp"

namespace weft::uet {

// Of the path that a packet takes.
inline uint16_t take_entropy(const RcConfig& common, PathChoice* path_choice, TimePs now, uint64_t sequence,
                             bool retransmission) {
  const uint16_t entropy =
      path_choice == nullptr ? common.source_udp_port : path_choice->entropy(now, sequence, retransmission);
  return entropy & kEntropyMask;
}

// The packet `sequence` of a message: `pds`, the headers of the packet delivery sublayer, a semantic header
// with the opcode, and `payload_bytes` from `offset` of the message on. One of a READ has none, and asks for
// as much as a packet of a WRITE would have.
template <class... Pds>
PacketPtr build_message_packet(PacketPool& pool, const roce::RoceHeaders& to, const RcConfig& common,
                               const Message& message, uint8_t opcode, uint64_t sequence, uint64_t offset,
                               uint64_t payload_bytes, const Pds&... pds) {
  const Body body{message.data == nullptr ? nullptr : message.data + offset, payload_bytes,
                  message.as_length};
  const auto filled = [&]<class Header>(Header header) {
    header.opcode = opcode;
    header.hd = message.immediate.has_value();
    header.eom = sequence + 1 == message.end_sequence;
    header.message_id = message.id;
    header.pid_on_fep = static_cast<uint16_t>(common.remote_queue_pair >> 12);
    header.resource_index = common.remote_queue_pair & 0xFFF;
    header.buffer_offset = message.remote_address;
    header.initiator = common.queue_pair;
    header.match_bits = message.rkey;
    header.request_length = static_cast<uint32_t>(message.length_bytes);
    return header;
  };
  if (sequence == message.first_sequence) {
    Standard header = filled(Standard());
    header.header_data = message.immediate.value_or(0);
    return build_frame(pool, to, body, pds..., header);
  }
  Continuation header = filled(Continuation());
  header.payload_length =
      static_cast<uint16_t>(std::min<uint64_t>(common.path_mtu_bytes, message.length_bytes - offset));
  header.message_offset = static_cast<uint32_t>(offset);
  return build_frame(pool, to, body, pds..., header);
}

}  // namespace weft::uet

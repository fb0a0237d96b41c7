// Packets in messages between processes of one run.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "memory/message.hpp"
#include "packets/packet.hpp"
#include "time/time.hpp"

namespace weft {

// A packet on its way to a delay line, which is known by a number, as it is in a message.
struct PacketMessage {
  uint32_t line;
  TimePs due_ps;
  PacketPtr packet;
};

void put_packet(MessageWriter& writer, uint32_t line, TimePs due_ps, const Packet& packet);
// pool_of(line): the pool that the packet is to come from. Throws std::invalid_argument for what put_packet()
// never writes.
template <class PoolOf>
PacketMessage get_packet(MessageReader& reader, PoolOf&& pool_of);

// --- how

struct PacketMessageHead {
  TimePs due_ps;
  uint32_t line;
  uint32_t size;
  uint32_t virtual_bytes;
  uint8_t as_length;
  uint8_t damaged;
  uint8_t virtual_lane;
  uint8_t traffic_kind;
};
static_assert(sizeof(PacketMessageHead) == 24);

// Throws std::invalid_argument for one that no packet has.
void check_packet_head(const PacketMessageHead& head);

template <class PoolOf>
PacketMessage get_packet(MessageReader& reader, PoolOf&& pool_of) {
  const auto head = reader.get<PacketMessageHead>();
  check_packet_head(head);
  const std::string_view bytes = reader.take(head.size);
  PacketPool& pool = pool_of(head.line);
  PacketPtr packet = pool.copy_of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (head.as_length != 0) packet->append_virtual(head.virtual_bytes);
  if (head.damaged != 0) packet->set_damaged();
  packet->set_virtual_lane(head.virtual_lane);
  packet->set_traffic_kind(head.traffic_kind);
  return {head.line, head.due_ps, std::move(packet)};
}

}  // namespace weft

#include "packets/packet_message.hpp"

#include <stdexcept>

namespace weft {

void put_packet(MessageWriter& writer, uint32_t line, TimePs due_ps, const Packet& packet) {
  writer.put(PacketMessageHead{
      .due_ps = due_ps,
      .line = line,
      .size = static_cast<uint32_t>(packet.size()),
      .virtual_bytes = static_cast<uint32_t>(packet.virtual_bytes()),
      .as_length = static_cast<uint8_t>(packet.as_length()),
      .damaged = static_cast<uint8_t>(packet.damaged()),
      .virtual_lane = static_cast<uint8_t>(packet.virtual_lane()),
      .traffic_kind = packet.traffic_kind(),
  });
  writer.put_bytes({reinterpret_cast<const char*>(packet.data()), packet.size()});
}

void check_packet_head(const PacketMessageHead& head) {
  const bool is_flagged = head.as_length <= 1 && head.damaged <= 1;
  if (!is_flagged || head.due_ps < 0 || (head.virtual_bytes != 0 && head.as_length == 0))
    throw std::invalid_argument("a message between processes has a packet that no process sends");
}

}  // namespace weft

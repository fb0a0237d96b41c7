#include "packets/packet_message.hpp"

#include <stdexcept>

namespace weft {

namespace {
constexpr int kVirtualBytesBits = 24;  // of a packet's
}

void put_packet(MessageWriter& writer, uint32_t line, TimePs due_ps, const Packet& packet) {
  if (packet.packets() != 1 || packet.segment_offset() != 0 || !packet.ends_segment())
    throw std::logic_error("a segment, which stands for several packets, has no message between processes");
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
  const bool has_bytes = head.virtual_bytes == 0 || head.as_length != 0;
  if (!is_flagged || !has_bytes || head.due_ps < 0 || head.virtual_bytes >> kVirtualBytesBits != 0)
    throw std::invalid_argument("a message between processes has a packet that no process sends");
}

}  // namespace weft

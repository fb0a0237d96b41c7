#include "hosts/uet/placing.hpp"

#include <algorithm>

#include "hosts/rc_request.hpp"

namespace weft::uet {

bool has_right_size(const roce::ParsedPacket& packet, const WriteHeader& request, uint32_t path_mtu_bytes) {
  const size_t bytes = packet.payload_bytes;
  const uint64_t end = uint64_t{request.message_offset} + bytes;
  if (request.request_length > kMaxMessageBytes) return false;
  if (!request.ends_message) return end < request.request_length && bytes == path_mtu_bytes;
  return end == request.request_length && bytes <= path_mtu_bytes && (bytes > 0 || request.starts_message);
}

uint8_t place_write(const roce::ParsedPacket& packet, const WriteHeader& write,
                    const MemoryRegistry& memory) {
  const size_t bytes = packet.payload_bytes;
  if (bytes == 0) return kReturnOk;
  const uint64_t address = write.buffer_offset + write.message_offset;
  const bool is_key = write.memory_key <= 0xFFFFFFFF;
  const MemoryRegion* region =
      is_key ? memory.find(static_cast<uint32_t>(write.memory_key), address, bytes, kRemoteWrite) : nullptr;
  if (region == nullptr) return kReturnPermissionViolation;
  if (packet.as_length) return kReturnOk;
  if (region->data != nullptr)
    std::copy_n(packet.payload, bytes, region->data + (address - region->virtual_address));
  else if (!store(*region, address, packet.payload, bytes))
    return kReturnPermissionViolation;  // no code says that memory has gone
  return kReturnOk;
}

}  // namespace weft::uet

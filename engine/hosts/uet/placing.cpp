#include "hosts/uet/placing.hpp"

#include <algorithm>

#include "hosts/rc_request.hpp"

namespace weft::uet {

uint8_t place_write(const roce::ParsedPacket& packet, const WriteHeader& write, uint32_t path_mtu_bytes,
                    const MemoryRegistry& memory) {
  if (write.opcode != kWrite) return kReturnUnsupportedOperation;
  const size_t bytes = packet.payload_bytes;
  const uint64_t end = uint64_t{write.message_offset} + bytes;
  const bool right_size = write.ends_message ? end == write.request_length && bytes <= path_mtu_bytes
                                             : end < write.request_length && bytes == path_mtu_bytes;
  if (!right_size || write.request_length > kMaxMessageBytes) return kReturnUnsupportedSize;
  if (bytes == 0) return write.starts_message ? kReturnOk : kReturnUnsupportedSize;
  const uint64_t address = write.buffer_offset + write.message_offset;
  const bool is_key = write.memory_key <= 0xFFFFFFFF;
  const MemoryRegion* region =
      is_key ? memory.find(static_cast<uint32_t>(write.memory_key), address, bytes, kRemoteWrite) : nullptr;
  if (region == nullptr) return kReturnPermissionViolation;
  if (region->data != nullptr && !packet.as_length)
    std::copy_n(packet.payload, bytes, region->data + (address - region->virtual_address));
  return kReturnOk;
}

}  // namespace weft::uet

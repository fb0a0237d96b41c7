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

uint8_t grant_read(const roce::ParsedPacket& packet, const WriteHeader& request, uint32_t path_mtu_bytes,
                   const MemoryRegistry& memory, ReadPart& part) {
  if (request.request_length > kMaxMessageBytes || request.message_offset > request.request_length)
    return kReturnUnsupportedSize;
  const uint32_t left_bytes = request.request_length - request.message_offset;
  const uint32_t bytes = std::min(path_mtu_bytes, left_bytes);
  const bool is_placed = request.message_offset % path_mtu_bytes == 0 &&
                         request.starts_message == (request.message_offset == 0) &&
                         request.ends_message == (bytes == left_bytes) &&
                         (request.starts_message || (bytes > 0 && request.payload_length == bytes));
  if (!is_placed || packet.payload_bytes > 0) return kReturnUnsupportedSize;
  part = {.address = request.buffer_offset + request.message_offset,
          .rkey = static_cast<uint32_t>(request.memory_key),
          .message_offset = request.message_offset,
          .message_id = request.message_id,
          .bytes = static_cast<uint16_t>(bytes),
          .as_length = packet.as_length,
          .traffic_kind = packet.traffic_kind};
  const bool is_key = request.memory_key <= 0xFFFFFFFF;
  const bool may_read =
      bytes == 0 || (is_key && memory.find(part.rkey, part.address, bytes, kRemoteRead) != nullptr);
  return may_read ? kReturnOk : kReturnPermissionViolation;
}

std::optional<Body> body_of(const ReadPart& part, const MemoryRegistry& memory) {
  Body body{.payload = nullptr, .bytes = part.bytes, .as_length = part.as_length};
  if (part.bytes == 0) return body;
  const MemoryRegion* const region = memory.find(part.rkey, part.address, part.bytes, kRemoteRead);
  // UET's READs reach no foreign memory.
  if (region == nullptr || region->foreign != nullptr) return std::nullopt;
  if (region->data != nullptr && !part.as_length)
    body.payload = region->data + (part.address - region->virtual_address);
  return body;
}

ResponseData response_with(const ReadPart& part) {
  return {.opcode = kResponseWithData,
          .return_code = kReturnOk,
          .read_request_message_id = part.message_id,
          .payload_length = part.bytes,
          .message_offset = part.message_offset};
}

bool place_read_data(const roce::ParsedPacket& packet, const ResponseData& response, uint8_t* target,
                     uint64_t length_bytes, uint32_t path_mtu_bytes) {
  const uint64_t offset = response.message_offset;
  if (offset % path_mtu_bytes != 0 || offset > length_bytes) return false;
  const uint64_t bytes = std::min<uint64_t>(path_mtu_bytes, length_bytes - offset);
  if (packet.payload_bytes != bytes || response.payload_length != bytes) return false;
  if (target != nullptr && !packet.as_length && bytes > 0)
    std::copy_n(packet.payload, bytes, target + offset);
  return true;
}

}  // namespace weft::uet

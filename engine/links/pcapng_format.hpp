// Blocks of the pcapng format (IETF draft-ietf-opsawg-pcapng), in this machine's byte order, as the format
// allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

enum class CaptureDirection : uint8_t { kUnknown = 0, kInbound = 1, kOutbound = 2 };

// What a capture says about where it was taken; empty or 0 for what is not known.
struct CaptureInterface {
  std::string name;
  std::string description;
  uint64_t rate_bps = 0;
};

namespace pcapng {

// The section's header and the description of its one interface, of Ethernet, with stamps in nanoseconds.
std::vector<uint8_t> file_header(const CaptureInterface& interface, uint32_t snap_length);

struct PacketBlock {
  std::vector<uint8_t> before;  // the frame
  std::vector<uint8_t> after;
};
PacketBlock packet_block(uint64_t time_ns, uint32_t captured_bytes, uint32_t original_bytes,
                         CaptureDirection direction);

}  // namespace pcapng
}  // namespace weft

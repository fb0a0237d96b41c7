// A TCP segment without its payload's bytes (RFC 9293, section 3.1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace weft::tcp {

// Bits of the header's flags.
enum Flag : uint8_t {
  kFin = 0x01,
  kSyn = 0x02,
  kReset = 0x04,
  kPush = 0x08,
  kAck = 0x10,
  kUrgent = 0x20,
  kEcnEcho = 0x40,
  kWindowReduced = 0x80,
};

// The two ECN bits of the IP header (RFC 3168, section 5).
enum class Ecn : uint8_t { kNotCapable = 0, kCapable1 = 1, kCapable0 = 2, kCongestionExperienced = 3 };

// Received bytes beyond the acknowledgement, [begin, end) (RFC 2018, section 3).
struct SackBlock {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// RFC 7323, section 3.2.
struct Timestamps {
  uint32_t value = 0;
  uint32_t echo = 0;
};

constexpr uint32_t kMostSackBlocks = 4;

struct Options {
  std::optional<uint16_t> maximum_segment_bytes;
  std::optional<uint8_t> window_scale;
  bool sack_permitted = false;
  std::optional<Timestamps> timestamps;
  std::array<SackBlock, kMostSackBlocks> sack_blocks{};
  uint32_t sack_block_count = 0;
};

struct Segment {
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint32_t sequence = 0;
  uint32_t acknowledgement = 0;
  uint16_t window = 0;  // as on the wire, not scaled
  uint8_t flags = 0;
  Ecn ecn = Ecn::kNotCapable;
  Options options{};
  uint32_t payload_bytes = 0;
  uint64_t payload_offset = 0;  // of the payload in the sender's stream; not on the wire

  bool has(Flag flag) const { return (flags & flag) != 0; }
};

}  // namespace weft::tcp

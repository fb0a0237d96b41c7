// TCP's sequence numbers: 32 bits on the wire, 64 bits within a connection, where SYN has number 0 and the
// first byte of data number 1. Only the two conversions know about wrapping (RFC 9293, section 3.4).
#pragma once

#include <cstdint>

namespace weft::tcp {

using Sequence = uint64_t;

constexpr Sequence kFirstByte = 1;

class SequenceMap {
 public:
  explicit SequenceMap(uint32_t initial = 0) : initial_(initial) {}

  uint32_t wire(Sequence sequence) const { return initial_ + static_cast<uint32_t>(sequence); }
  // The number nearest to `near`; negative for one from before the connection's start.
  int64_t sequence(uint32_t wire_value, Sequence near) const {
    return static_cast<int64_t>(near) + static_cast<int32_t>(wire_value - wire(near));
  }

 private:
  uint32_t initial_;
};

}  // namespace weft::tcp

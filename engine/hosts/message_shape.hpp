// The opcodes of SENDs and WRITEs, RC's: what one says about its packet's place in a message, and which one a
// packet has. UC's are roce::kUcOpcodes higher.
#pragma once

#include <cstdint>

#include "hosts/queue_pair.hpp"
#include "packets/roce_formats.hpp"

namespace weft {

struct MessageShape {
  enum class Message : uint8_t { kNone, kWrite, kSend };
  Message message = Message::kNone;  // kNone: the opcode is of neither
  bool first = false;
  bool last = false;
  bool immediate = false;
};

MessageShape shape_of(uint8_t opcode);

// Of a packet of a kWrite or a kSend; an immediate is with the last one only.
inline uint8_t opcode_of(CompletionKind kind, bool first, bool last, bool immediate) {
  using namespace roce;
  const bool write = kind == CompletionKind::kWrite;
  if (first && last) {
    if (immediate) return write ? kRcWriteOnlyImmediate : kRcSendOnlyImmediate;
    return write ? kRcWriteOnly : kRcSendOnly;
  }
  if (first) return write ? kRcWriteFirst : kRcSendFirst;
  if (!last) return write ? kRcWriteMiddle : kRcSendMiddle;
  if (immediate) return write ? kRcWriteLastImmediate : kRcSendLastImmediate;
  return write ? kRcWriteLast : kRcSendLast;
}

}  // namespace weft

#include "hosts/message_shape.hpp"

namespace weft {

MessageShape shape_of(uint8_t opcode) {
  using enum MessageShape::Message;
  using namespace roce;
  switch (opcode) {
    case kRcSendFirst:
      return {kSend, true, false, false};
    case kRcSendMiddle:
      return {kSend, false, false, false};
    case kRcSendLast:
      return {kSend, false, true, false};
    case kRcSendLastImmediate:
      return {kSend, false, true, true};
    case kRcSendOnly:
      return {kSend, true, true, false};
    case kRcSendOnlyImmediate:
      return {kSend, true, true, true};
    case kRcWriteFirst:
      return {kWrite, true, false, false};
    case kRcWriteMiddle:
      return {kWrite, false, false, false};
    case kRcWriteLast:
      return {kWrite, false, true, false};
    case kRcWriteLastImmediate:
      return {kWrite, false, true, true};
    case kRcWriteOnly:
      return {kWrite, true, true, false};
    case kRcWriteOnlyImmediate:
      return {kWrite, true, true, true};
    default:
      return {};  // READs and atomics have no shape, invalidation is not offered
  }
}

}  // namespace weft

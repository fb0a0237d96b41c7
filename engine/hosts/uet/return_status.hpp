// How a request ends that the peer's semantic sublayer has refused.
#pragma once

#include <cstdint>

#include "hosts/queue_pair.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

// `code` is the return code of a response, other than kReturnNull and kReturnOk.
constexpr CompletionStatus status_of_return_code(uint8_t code) {
  switch (code) {
    case kReturnUnsupportedOperation:
    case kReturnUnsupportedSize:
    case kReturnOperationViolation:
    case kReturnTooLong:
      return CompletionStatus::kRemoteInvalidRequest;
    case kReturnPermissionViolation:
    case kReturnBadKey:
      return CompletionStatus::kRemoteAccessError;
    default:
      return CompletionStatus::kRemoteOperationError;
  }
}

}  // namespace weft::uet

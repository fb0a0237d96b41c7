#include "hosts/queue_pair.hpp"

namespace weft {

const char* completion_status_name(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::kSuccess:
      return "success";
    case CompletionStatus::kLocalLengthError:
      return "local_length_error";
    case CompletionStatus::kLocalProtectionError:
      return "local_protection_error";
    case CompletionStatus::kRemoteInvalidRequest:
      return "remote_invalid_request";
    case CompletionStatus::kRemoteAccessError:
      return "remote_access_error";
    case CompletionStatus::kRemoteOperationError:
      return "remote_operation_error";
    case CompletionStatus::kRetryExceeded:
      return "retry_exceeded";
    case CompletionStatus::kRnrRetryExceeded:
      return "rnr_retry_exceeded";
    case CompletionStatus::kFlushed:
      return "flushed";
    case CompletionStatus::kCount:
      break;
  }
  return "unknown";
}

const char* completion_kind_name(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::kWrite:
      return "write";
    case CompletionKind::kSend:
      return "send";
    case CompletionKind::kRead:
      return "read";
    case CompletionKind::kCompareSwap:
      return "compare_swap";
    case CompletionKind::kFetchAdd:
      return "fetch_add";
    case CompletionKind::kReceive:
      return "receive";
    case CompletionKind::kWriteImmediate:
      return "write_immediate";
    case CompletionKind::kAggregate:
      return "aggregate";
  }
  return "unknown";
}

const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kLocal:
      return "local";
    case Fault::kPeer:
      return "peer";
    case Fault::kNetwork:
      return "network";
  }
  return "unknown";
}

Fault completion_fault(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::kRemoteInvalidRequest:
    case CompletionStatus::kRemoteAccessError:
      return Fault::kLocal;  // we asked for what the peer rightly refuses
    case CompletionStatus::kLocalProtectionError:
      return Fault::kLocal;
    case CompletionStatus::kLocalLengthError:
    case CompletionStatus::kRemoteOperationError:
    case CompletionStatus::kRnrRetryExceeded:
      return Fault::kPeer;
    case CompletionStatus::kRetryExceeded:
      return Fault::kNetwork;
    case CompletionStatus::kSuccess:
    case CompletionStatus::kFlushed:
    case CompletionStatus::kCount:
      break;
  }
  return Fault::kNone;
}

CompletionStatus status_of_nak(uint8_t syndrome) {
  switch (syndrome) {
    case roce::kSyndromeNakInvalidRequest:
      return CompletionStatus::kRemoteInvalidRequest;
    case roce::kSyndromeNakRemoteAccess:
      return CompletionStatus::kRemoteAccessError;
    case roce::kSyndromeNakRemoteOperation:
      return CompletionStatus::kRemoteOperationError;
    default:
      return CompletionStatus::kSuccess;
  }
}

}  // namespace weft

// Values of libibverbs' enumerations (infiniband/verbs.h), as they travel in entries of rings, and what they
// are to the engine.
#pragma once

#include <cstdint>

#include "hosts/queue_pair.hpp"
#include "verbs/protocol.hpp"

namespace weft::verbs {

// enum ibv_wr_opcode
enum WorkOpcode : uint32_t {
  kWorkWrite = 0,
  kWorkWriteImmediate = 1,
  kWorkSend = 2,
  kWorkSendImmediate = 3,
  kWorkRead = 4,
  kWorkCompareSwap = 5,
  kWorkFetchAdd = 6,
};

// enum ibv_send_flags
enum SendFlag : uint32_t { kFence = 1, kSignaled = 2, kSolicited = 4, kInline = 8 };

// enum ibv_access_flags
enum AccessFlag : uint32_t {
  kLocalWrite = 1,
  kAccessRemoteWrite = 2,
  kAccessRemoteRead = 4,
  kAccessRemoteAtomic = 8,
};

// enum ibv_wc_opcode
enum CompletionOpcode : uint32_t {
  kDoneSend = 0,
  kDoneWrite = 1,
  kDoneRead = 2,
  kDoneCompareSwap = 3,
  kDoneFetchAdd = 4,
  kDoneReceive = 128,
  kDoneReceiveWithImmediate = 129,
};

// enum ibv_wc_flags
enum CompletionFlag : uint32_t { kHasGrh = 1, kHasImmediate = 2 };

// enum ibv_wc_status
enum WorkStatus : uint32_t {
  kStatusSuccess = 0,
  kStatusLocalLength = 1,
  kStatusLocalOperation = 2,
  kStatusLocalProtection = 4,
  kStatusFlushed = 5,
  kStatusRemoteInvalidRequest = 9,
  kStatusRemoteAccess = 10,
  kStatusRemoteOperation = 11,
  kStatusRetryExceeded = 12,
  kStatusRnrRetryExceeded = 13,
};

// enum ibv_event_type
enum EventType : uint32_t {
  kEventCompletionQueueError = 0,
  kEventQueuePairFatal = 1,
  kEventRequestError = 2,
  kEventAccessError = 3,
  kEventEstablished = 4,
  kEventDrained = 5,
  kEventPortActive = 9,
  kEventPortError = 10,
  kEventSharedLimit = 15,
  kEventLastTaken = 16,
};

// enum ibv_qp_type; MRC is none of libibverbs'.
enum QueuePairType : uint32_t { kTypeRc = 2, kTypeUc = 3, kTypeUd = 4, kTypeMrc = kMrcType };

constexpr WorkStatus status_of(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::kSuccess:
      return kStatusSuccess;
    case CompletionStatus::kLocalLengthError:
      return kStatusLocalLength;
    case CompletionStatus::kLocalProtectionError:
      return kStatusLocalProtection;
    case CompletionStatus::kRemoteInvalidRequest:
      return kStatusRemoteInvalidRequest;
    case CompletionStatus::kRemoteAccessError:
      return kStatusRemoteAccess;
    case CompletionStatus::kRemoteOperationError:
      return kStatusRemoteOperation;
    case CompletionStatus::kRetryExceeded:
      return kStatusRetryExceeded;
    case CompletionStatus::kRnrRetryExceeded:
      return kStatusRnrRetryExceeded;
    case CompletionStatus::kFlushed:
    case CompletionStatus::kCount:
      break;
  }
  return kStatusFlushed;
}

constexpr CompletionKind kind_of(uint32_t opcode) {
  switch (opcode) {
    case kWorkSend:
    case kWorkSendImmediate:
      return CompletionKind::kSend;
    case kWorkRead:
      return CompletionKind::kRead;
    case kWorkCompareSwap:
      return CompletionKind::kCompareSwap;
    case kWorkFetchAdd:
      return CompletionKind::kFetchAdd;
    default:
      return CompletionKind::kWrite;
  }
}

constexpr CompletionOpcode opcode_of(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::kSend:
      return kDoneSend;
    case CompletionKind::kRead:
      return kDoneRead;
    case CompletionKind::kCompareSwap:
      return kDoneCompareSwap;
    case CompletionKind::kFetchAdd:
      return kDoneFetchAdd;
    case CompletionKind::kReceive:
      return kDoneReceive;
    case CompletionKind::kWriteImmediate:
      return kDoneReceiveWithImmediate;
    default:
      return kDoneWrite;
  }
}

}  // namespace weft::verbs

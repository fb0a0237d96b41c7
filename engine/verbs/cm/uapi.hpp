// Numbers of <rdma/rdma_cma.h> and <infiniband/verbs.h> that cross the kernel's interface: their headers
// belong to packages that not every machine has.
#pragma once

#include <cstdint>

namespace weft::cm::uapi {

// enum rdma_cm_event_type
enum EventType : uint32_t {
  kAddressResolved = 0,
  kAddressError = 1,
  kRouteResolved = 2,
  kRouteError = 3,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kConnectError = 6,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDisconnected = 10,
  kDeviceRemoval = 11,
  kMulticastJoin = 12,
  kMulticastError = 13,
  kAddressChange = 14,
  kTimeWaitExit = 15,
};

// enum ibv_qp_type
enum QueuePairType : uint8_t { kReliableConnected = 2, kUnreliableConnected = 3, kDatagram = 4 };

// enum ibv_qp_state
enum QueuePairState : uint32_t { kReset = 0, kInit = 1, kReadyToReceive = 2, kReadyToSend = 3, kError = 6 };

// enum ibv_qp_attr_mask
enum AttributeMask : uint32_t {
  kMaskState = 1 << 0,
  kMaskAccessFlags = 1 << 3,
  kMaskPKeyIndex = 1 << 4,
  kMaskPort = 1 << 5,
  kMaskQKey = 1 << 6,
  kMaskAddress = 1 << 7,
  kMaskPathMtu = 1 << 8,
  kMaskTimeout = 1 << 9,
  kMaskRetryCount = 1 << 10,
  kMaskRnrRetry = 1 << 11,
  kMaskReceivePsn = 1 << 12,
  kMaskMaxReadAtomic = 1 << 13,
  kMaskMinRnrTimer = 1 << 15,
  kMaskSendPsn = 1 << 16,
  kMaskMaxDestinationReadAtomic = 1 << 17,
  kMaskDestinationQpn = 1 << 20,
};

// enum ibv_access_flags
enum Access : uint32_t { kRemoteWrite = 2, kRemoteRead = 4, kRemoteAtomic = 8 };

constexpr uint32_t kCommunicationEstablished = 4;  // IBV_EVENT_COMM_EST

}  // namespace weft::cm::uapi

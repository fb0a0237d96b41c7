// What passes between a program's preloaded library and the host's NIC process for /dev/infiniband/rdma_cm:
// one Unix connection for each descriptor of that device. Freestanding: the preloaded library has no
// libstdc++.
//
// The program's descriptor is the connection itself (SOCK_SEQPACKET), so that dup(), fork() and close() need
// no help and poll() sees what the kernel's device would show: it is readable while events wait. The server
// sends a single byte when events of a client begin to wait, and says in a command's answer that none waits
// any more: then the byte is read. Commands carry a socket for their answer (SCM_RIGHTS), so that answers
// never make the descriptor readable and threads and processes that share it cannot take each other's.
#pragma once

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <stdint.h>

namespace weft::cm {

constexpr uint32_t kHelloMagic = 0x57434D31;  // "WCM1"; another number begins every other version
constexpr size_t kMostCommandBytes = 1024;
constexpr size_t kMostOptionBytes = 1024;
constexpr size_t kMostResponseBytes = 1024;

// The first message of a connection, and its answer.
struct Hello {
  uint32_t magic = kHelloMagic;
  uint32_t reserved = 0;
};
struct HelloAnswer {
  uint32_t magic = kHelloMagic;
  uint32_t error = 0;    // an errno
  uint64_t channel = 0;  // names this connection where another one takes over an ID (MIGRATE_ID)
};

// Before a command's bytes, as the program has written them, and those of an option (SET_OPTION).
struct CommandHeader {
  uint32_t command_bytes = 0;
  uint32_t option_bytes = 0;
  uint64_t channel = 0;  // of MIGRATE_ID: the connection of the command's `fd`; 0: it is no such descriptor
};
// Before the bytes that belong where the command's `response` points.
struct CommandAnswer {
  uint32_t error = 0;  // an errno
  uint32_t response_bytes = 0;
  uint32_t is_drained = 0;         // no event waits any more: take a byte from the connection
  uint32_t is_source_drained = 0;  // the same of the connection of MIGRATE_ID's `fd`
};

// Where a command has its `response`, behind its header; -1 for commands without an answer.
constexpr int response_offset(uint32_t command) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return offsetof(rdma_ucm_create_id, response);
    case RDMA_USER_CM_CMD_DESTROY_ID:
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return offsetof(rdma_ucm_destroy_id, response);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY:
      return offsetof(rdma_ucm_query, response);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return offsetof(rdma_ucm_init_qp_attr, response);
    case RDMA_USER_CM_CMD_GET_EVENT:
      return offsetof(rdma_ucm_get_event, response);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      return offsetof(rdma_ucm_join_ip_mcast, response);
    case RDMA_USER_CM_CMD_JOIN_MCAST:
      return offsetof(rdma_ucm_join_mcast, response);
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return offsetof(rdma_ucm_migrate_id, response);
    default:
      return -1;
  }
}

}  // namespace weft::cm

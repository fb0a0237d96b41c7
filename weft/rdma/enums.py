"""The numbers of libibverbs (infiniband/verbs.h), by their names there."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class WROpcode(IntEnum):
    """Names what a work request of the send queue does (`ibv_wr_opcode`)."""

    IBV_WR_RDMA_WRITE = 0
    IBV_WR_RDMA_WRITE_WITH_IMM = 1
    IBV_WR_SEND = 2
    IBV_WR_SEND_WITH_IMM = 3
    IBV_WR_RDMA_READ = 4
    IBV_WR_ATOMIC_CMP_AND_SWP = 5
    IBV_WR_ATOMIC_FETCH_AND_ADD = 6


class WCOpcode(IntEnum):
    """Names what has completed (`ibv_wc_opcode`)."""

    IBV_WC_SEND = 0
    IBV_WC_RDMA_WRITE = 1
    IBV_WC_RDMA_READ = 2
    IBV_WC_COMP_SWAP = 3
    IBV_WC_FETCH_ADD = 4
    IBV_WC_RECV = 128
    IBV_WC_RECV_RDMA_WITH_IMM = 129


class WCStatus(IntEnum):
    """How a request ended (`ibv_wc_status`); Weft's queue pairs report these."""

    IBV_WC_SUCCESS = 0
    IBV_WC_LOC_LEN_ERR = 1
    IBV_WC_LOC_PROT_ERR = 4
    IBV_WC_WR_FLUSH_ERR = 5
    IBV_WC_REM_INV_REQ_ERR = 9
    IBV_WC_REM_ACCESS_ERR = 10
    IBV_WC_REM_OP_ERR = 11
    IBV_WC_RETRY_EXC_ERR = 12
    IBV_WC_RNR_RETRY_EXC_ERR = 13


class WCFlags(IntFlag):
    """Which fields of a work completion are valid (`ibv_wc_flags`)."""

    IBV_WC_WITH_IMM = 2


class SendFlags(IntFlag):
    """Properties of a work request (`ibv_send_flags`)."""

    IBV_SEND_SIGNALED = 2


class AccessFlags(IntFlag):
    """Names what may be done with a memory region (`ibv_access_flags`); this host may always read it."""

    IBV_ACCESS_LOCAL_WRITE = 1
    IBV_ACCESS_REMOTE_WRITE = 2
    IBV_ACCESS_REMOTE_READ = 4
    IBV_ACCESS_REMOTE_ATOMIC = 8


class QPState(IntEnum):
    """State of a queue pair (`ibv_qp_state`)."""

    IBV_QPS_RESET = 0
    IBV_QPS_INIT = 1
    IBV_QPS_RTR = 2
    IBV_QPS_RTS = 3
    IBV_QPS_ERR = 6


IBV_WR_RDMA_WRITE = WROpcode.IBV_WR_RDMA_WRITE
IBV_WR_RDMA_WRITE_WITH_IMM = WROpcode.IBV_WR_RDMA_WRITE_WITH_IMM
IBV_WR_SEND = WROpcode.IBV_WR_SEND
IBV_WR_SEND_WITH_IMM = WROpcode.IBV_WR_SEND_WITH_IMM
IBV_WR_RDMA_READ = WROpcode.IBV_WR_RDMA_READ
IBV_WR_ATOMIC_CMP_AND_SWP = WROpcode.IBV_WR_ATOMIC_CMP_AND_SWP
IBV_WR_ATOMIC_FETCH_AND_ADD = WROpcode.IBV_WR_ATOMIC_FETCH_AND_ADD
IBV_WC_SEND = WCOpcode.IBV_WC_SEND
IBV_WC_RDMA_WRITE = WCOpcode.IBV_WC_RDMA_WRITE
IBV_WC_RDMA_READ = WCOpcode.IBV_WC_RDMA_READ
IBV_WC_COMP_SWAP = WCOpcode.IBV_WC_COMP_SWAP
IBV_WC_FETCH_ADD = WCOpcode.IBV_WC_FETCH_ADD
IBV_WC_RECV = WCOpcode.IBV_WC_RECV
IBV_WC_RECV_RDMA_WITH_IMM = WCOpcode.IBV_WC_RECV_RDMA_WITH_IMM
IBV_WC_SUCCESS = WCStatus.IBV_WC_SUCCESS
IBV_WC_LOC_LEN_ERR = WCStatus.IBV_WC_LOC_LEN_ERR
IBV_WC_LOC_PROT_ERR = WCStatus.IBV_WC_LOC_PROT_ERR
IBV_WC_WR_FLUSH_ERR = WCStatus.IBV_WC_WR_FLUSH_ERR
IBV_WC_REM_INV_REQ_ERR = WCStatus.IBV_WC_REM_INV_REQ_ERR
IBV_WC_REM_ACCESS_ERR = WCStatus.IBV_WC_REM_ACCESS_ERR
IBV_WC_REM_OP_ERR = WCStatus.IBV_WC_REM_OP_ERR
IBV_WC_RETRY_EXC_ERR = WCStatus.IBV_WC_RETRY_EXC_ERR
IBV_WC_RNR_RETRY_EXC_ERR = WCStatus.IBV_WC_RNR_RETRY_EXC_ERR
IBV_WC_WITH_IMM = WCFlags.IBV_WC_WITH_IMM
IBV_SEND_SIGNALED = SendFlags.IBV_SEND_SIGNALED
IBV_ACCESS_LOCAL_WRITE = AccessFlags.IBV_ACCESS_LOCAL_WRITE
IBV_ACCESS_REMOTE_WRITE = AccessFlags.IBV_ACCESS_REMOTE_WRITE
IBV_ACCESS_REMOTE_READ = AccessFlags.IBV_ACCESS_REMOTE_READ
IBV_ACCESS_REMOTE_ATOMIC = AccessFlags.IBV_ACCESS_REMOTE_ATOMIC
IBV_QPS_RESET = QPState.IBV_QPS_RESET
IBV_QPS_INIT = QPState.IBV_QPS_INIT
IBV_QPS_RTR = QPState.IBV_QPS_RTR
IBV_QPS_RTS = QPState.IBV_QPS_RTS
IBV_QPS_ERR = QPState.IBV_QPS_ERR

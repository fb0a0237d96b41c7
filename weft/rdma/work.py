"""Work requests and work completions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.rdma.enums import SendFlags, WCFlags, WCOpcode, WCStatus, WROpcode
from weft.rdma.errors import WorkError

SEND = "SEND"
_WRITE_WITH_IMMEDIATE = "WRITE with immediate"
OPERATIONS = {
    WROpcode.IBV_WR_RDMA_WRITE: "WRITE",
    WROpcode.IBV_WR_RDMA_WRITE_WITH_IMM: _WRITE_WITH_IMMEDIATE,
    WROpcode.IBV_WR_SEND: SEND,
    WROpcode.IBV_WR_SEND_WITH_IMM: SEND,
    WROpcode.IBV_WR_RDMA_READ: "READ",
    WROpcode.IBV_WR_ATOMIC_CMP_AND_SWP: "atomic operation",
    WROpcode.IBV_WR_ATOMIC_FETCH_AND_ADD: "atomic operation",
}
"""A transport's name for the operation of each opcode."""
TAKES_RECEIVES = frozenset({SEND, _WRITE_WITH_IMMEDIATE})
"""Operations that take a receive of the peer's."""
ATOMIC_BYTES = 8
NO_FLAGS = WCFlags(0)


def plural(operation: str) -> str:
    """Return the plural of an operation's name."""
    name, *rest = operation.split(" with ")
    return " with ".join([f"{name}s", *rest])


@dataclass(frozen=True)
class SGE:
    """A range of registered memory: its virtual address, its length in bytes, the region's lkey."""

    addr: int
    length: int
    lkey: int


@dataclass
class SendWR:
    """A work request of the send queue; `set_wr_rdma` and `set_wr_atomic` name the peer's memory.

    Without a scatter/gather element a WRITE or SEND has no bytes. `imm_data` is 32 bits, which come out of the peer's
    completion as they are.
    """

    wr_id: int = 0
    sg: Sequence[SGE] = ()
    opcode: WROpcode = WROpcode.IBV_WR_SEND
    send_flags: SendFlags = SendFlags.IBV_SEND_SIGNALED
    imm_data: int = 0
    rkey: int = 0
    remote_addr: int = 0
    compare_add: int = 0
    swap: int = 0

    def set_wr_rdma(self, rkey: int, addr: int) -> SendWR:
        """Say which memory of the peer a WRITE or READ uses; returns the request."""
        self.rkey, self.remote_addr = rkey, addr
        return self

    def set_wr_atomic(self, rkey: int, addr: int, compare_add: int, swap: int = 0) -> SendWR:
        """Say on which 8 bytes of the peer an atomic works, and with what; returns the request.

        `compare_add` is what is added, or what the bytes are compared with; numbers have the hosts' byte order.
        """
        self.rkey, self.remote_addr, self.compare_add, self.swap = rkey, addr, compare_add, swap
        return self


@dataclass
class RecvWR:
    """A place for one incoming SEND; a WRITE with immediate consumes one, too, and leaves its memory alone."""

    wr_id: int = 0
    sg: Sequence[SGE] = ()


@dataclass(frozen=True)
class WC:
    """A work completion.

    `opcode` is valid whatever the status is. `byte_len` is the length of the message. `imm_data` is valid with
    IBV_WC_WITH_IMM. `posted_ps` and `completed_ps` are emulated times of the NIC: when the request was posted (0 for
    receives), and when it was done; a program learns of it a little later.
    """

    wr_id: int
    status: WCStatus
    opcode: WCOpcode
    byte_len: int = 0
    imm_data: int = 0
    wc_flags: WCFlags = NO_FLAGS
    qp_num: int = 0
    posted_ps: int = 0
    completed_ps: int = 0

    @property
    def latency_ps(self) -> int:
        """How long a request of the send queue took, from when it was posted."""
        return self.completed_ps - self.posted_ps

    def check(self) -> WC:
        """Return it. Raises WorkError unless it succeeded."""
        if self.status is not WCStatus.IBV_WC_SUCCESS:
            raise WorkError(
                f"{self.opcode.name} with wr_id {self.wr_id} on queue pair {self.qp_num:#x}: {self.status.name}",
                self.status,
            )
        return self

"""A model of the part of pyverbs that lab 21's program uses: devices of one process that reach each other's memory.

Requests are carried out when they are posted, with the checks of an adapter: keys, bounds, access, posted receives.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import types
from collections import deque
from dataclasses import dataclass, field
from typing import Any

OPCODES = {"IBV_WR_RDMA_WRITE_WITH_IMM": 1, "IBV_WR_SEND_WITH_IMM": 3, "IBV_WR_RDMA_READ": 4}
WRITE, SEND, READ = OPCODES.values()
CONSTANTS = {
    **OPCODES,
    "IBV_QPT_RC": 2,
    "IBV_SEND_SIGNALED": 2,
    "IBV_ACCESS_LOCAL_WRITE": 1,
    "IBV_ACCESS_REMOTE_WRITE": 2,
    "IBV_ACCESS_REMOTE_READ": 4,
    "IBV_MTU_1024": 3,
    "IBV_WC_SUCCESS": 0,
    "IBV_WC_SEND": 0,
    "IBV_WC_RDMA_WRITE": 1,
    "IBV_WC_RDMA_READ": 2,
    "IBV_WC_RECV": 128,
    "IBV_WC_RECV_RDMA_WITH_IMM": 129,
}
REMOTE_ACCESS_ERROR, RECEIVER_NOT_READY = 10, 13
_COMPLETED_AS = {WRITE: 1, SEND: 0, READ: 2}
_ARRIVES_AS = {WRITE: 129, SEND: 128}
_NEEDED_ACCESS = {WRITE: 2, READ: 4}


class PyverbsError(Exception):
    pass


@dataclass
class Fabric:
    """All devices, memory regions and queue pairs, by name, key and number."""

    devices: dict[str, str]
    regions: dict[int, MR] = field(default_factory=dict)
    queue_pairs: dict[int, QP] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(17))
    lock: threading.RLock = field(default_factory=threading.RLock)

    def region(self, key: int, address: int, length: int, access: int) -> bool:
        """Whether bytes lie in a region of that key that grants the access."""
        found = self.regions.get(key)
        return (
            found is not None
            and found.address <= address
            and address + length <= found.address + found.length
            and found.access & access == access
        )


FABRIC = Fabric({})


@dataclass
class GID:
    gid: str


class Context:
    def __init__(self, *, name: str) -> None:
        if name not in FABRIC.devices:
            raise PyverbsError(f"Failed to find device {name}")
        self.name = name

    def query_gid(self, port_num: int, index: int) -> GID:
        if index == 0:
            return GID("fe80:0000:0000:0000:0000:0000:0000:0001")
        if index > 1:
            raise PyverbsError(f"Failed to query gid {index} of port {port_num}")
        return GID(FABRIC.devices[self.name])


@dataclass
class PD:
    context: Context


class MR:
    def __init__(self, pd: PD, length: int = 0, access: int = 0, address: int = 0) -> None:
        assert address, "this program registers memory of its own"
        self.pd, self.length, self.access, self.address = pd, length, access, address
        self.lkey = self.rkey = next(FABRIC.numbers)
        FABRIC.regions[self.rkey] = self


@dataclass
class WC:
    wr_id: int
    status: int
    opcode: int
    qp_num: int
    byte_len: int = 0
    imm_data: int = 0


class CQ:
    def __init__(self, context: Context, cqe: int) -> None:
        self.context, self.cqe = context, cqe
        self.entries: deque[WC] = deque()

    def add(self, entry: WC) -> None:
        assert len(self.entries) < self.cqe
        self.entries.append(entry)

    def poll(self, num_entries: int = 1) -> tuple[int, list[WC]]:
        with FABRIC.lock:
            found = [self.entries.popleft() for _ in range(min(num_entries, len(self.entries)))]
        return len(found), found


@dataclass
class SGE:
    addr: int
    length: int
    lkey: int


@dataclass
class RecvWR:
    wr_id: int = 0
    num_sge: int = 0
    sg: list[SGE] | None = None

    def __post_init__(self) -> None:
        if self.num_sge < 1 or self.sg is None:
            raise PyverbsError("A WR needs at least one SGE")


@dataclass
class SendWR(RecvWR):
    opcode: int = SEND
    imm_data: int = 0
    send_flags: int = 2
    rkey: int = 0
    address: int = 0

    def set_wr_rdma(self, rkey: int, addr: int) -> None:
        self.rkey, self.address = rkey, addr


@dataclass
class QPCap:
    max_send_wr: int = 1
    max_recv_wr: int = 10


@dataclass
class QPInitAttr:
    qp_type: int
    scq: CQ
    rcq: CQ
    cap: QPCap
    sq_sig_all: int = 1


@dataclass
class GlobalRoute:
    dgid: GID
    sgid_index: int = 0
    hop_limit: int = 1


@dataclass
class AHAttr:
    gr: GlobalRoute
    is_global: int = 0
    port_num: int = 1


class QPAttr:
    """Takes any attribute."""

    def __init__(self, port_num: int) -> None:
        self.port_num = port_num

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class QP:
    def __init__(self, creator: PD, init_attr: QPInitAttr) -> None:
        self.pd, self.init = creator, init_attr
        self.qp_num = next(FABRIC.numbers)
        self.receives: deque[RecvWR] = deque()
        self.state, self.other = "RESET", 0
        FABRIC.queue_pairs[self.qp_num] = self

    def to_init(self, qp_attr: QPAttr) -> None:
        assert self.state == "RESET"
        self.state = "INIT"

    def to_rts(self, qp_attr: QPAttr) -> None:
        assert self.state == "INIT"
        attributes = vars(qp_attr)
        assert {
            "path_mtu",
            "rq_psn",
            "sq_psn",
            "max_rd_atomic",
            "max_dest_rd_atomic",
            "timeout",
        } <= attributes.keys()
        other = FABRIC.queue_pairs[attributes["dest_qp_num"]]
        gid = FABRIC.devices[other.pd.context.name]
        assert attributes["ah_attr"].gr.dgid.gid == gid
        self.state, self.other = "RTS", other.qp_num

    def post_recv(self, wr: RecvWR) -> None:
        assert self.state != "RESET"
        assert len(self.receives) < self.init.cap.max_recv_wr
        with FABRIC.lock:
            self.receives.append(wr)

    def post_send(self, wr: SendWR) -> None:
        assert self.state == "RTS"
        with FABRIC.lock:
            status = self._carried_out(wr, FABRIC.queue_pairs[self.other])
            self.init.scq.add(WC(wr.wr_id, status, _COMPLETED_AS[wr.opcode], self.qp_num))

    def _carried_out(self, wr: SendWR, other: QP) -> int:
        """Move a request's bytes and complete what it consumes; returns the status."""
        assert wr.sg is not None
        (part,) = wr.sg
        assert FABRIC.region(part.lkey, part.addr, part.length, int(wr.opcode == READ))
        needed = _NEEDED_ACCESS.get(wr.opcode)
        if needed is not None and not FABRIC.region(wr.rkey, wr.address, part.length, needed):
            return REMOTE_ACCESS_ERROR
        if wr.opcode == READ:
            ctypes.memmove(part.addr, wr.address, part.length)
            return 0
        if not other.receives:
            return RECEIVER_NOT_READY
        receive = other.receives.popleft()
        if wr.opcode == WRITE:
            ctypes.memmove(wr.address, part.addr, part.length)
        arrived = _ARRIVES_AS[wr.opcode]
        other.init.rcq.add(WC(receive.wr_id, 0, arrived, other.qp_num, part.length, wr.imm_data))
        return 0


def modules() -> dict[str, types.ModuleType]:
    """Return the modules of the package, by their names."""
    made = {"pyverbs": types.ModuleType("pyverbs")}
    for name, parts in {
        "addr": [GID, AHAttr, GlobalRoute],
        "cq": [CQ],
        "device": [Context],
        "mr": [MR],
        "pd": [PD],
        "pyverbs_error": [PyverbsError],
        "qp": [QP, QPAttr, QPCap, QPInitAttr],
        "wr": [SGE, RecvWR, SendWR],
    }.items():
        module = types.ModuleType(f"pyverbs.{name}")
        vars(module).update({part.__name__: part for part in parts})
        made[module.__name__] = module
    made["pyverbs.enums"] = types.ModuleType("pyverbs.enums")
    vars(made["pyverbs.enums"]).update(CONSTANTS)
    vars(made["pyverbs"])["enums"] = made["pyverbs.enums"]
    return made

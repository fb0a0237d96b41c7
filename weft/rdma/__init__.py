"""RDMA programming: verbs of a host's adapter, for programs that run under either clock (docs/rdma.md)."""

from weft.rdma import enums
from weft.rdma.completion_queue import CQ
from weft.rdma.connecting import ConnectionRequest, Listener
from weft.rdma.device import Device
from weft.rdma.enums import AccessFlags, QPState, SendFlags, WCFlags, WCOpcode, WCStatus, WROpcode
from weft.rdma.errors import VerbsError, WorkError
from weft.rdma.memory import MR, PD
from weft.rdma.program import Program
from weft.rdma.queue_pair import QP, QPCap, QPInitAttr
from weft.rdma.work import SGE, WC, RecvWR, SendWR

__all__ = [
    "CQ",
    "MR",
    "PD",
    "QP",
    "SGE",
    "WC",
    "AccessFlags",
    "ConnectionRequest",
    "Device",
    "Listener",
    "Program",
    "QPCap",
    "QPInitAttr",
    "QPState",
    "RecvWR",
    "SendFlags",
    "SendWR",
    "VerbsError",
    "WCFlags",
    "WCOpcode",
    "WCStatus",
    "WROpcode",
    "WorkError",
    "enums",
]

"""RDMA programming: verbs of a host's adapter, for programs that run under either clock (docs/rdma.md)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Processes of hosts import what of this package travels in messages, and need none of this.
_IMPORTED_LATE = {
    "AccessFlags": "weft.rdma.enums",
    "CQ": "weft.rdma.completion_queue",
    "ConnectionRequest": "weft.rdma.connecting",
    "Device": "weft.rdma.device",
    "Listener": "weft.rdma.connecting",
    "MR": "weft.rdma.memory",
    "PD": "weft.rdma.memory",
    "Program": "weft.rdma.program",
    "QP": "weft.rdma.queue_pair",
    "QPCap": "weft.rdma.queue_pair",
    "QPInitAttr": "weft.rdma.queue_pair",
    "QPState": "weft.rdma.enums",
    "RecvWR": "weft.rdma.work",
    "SGE": "weft.rdma.work",
    "SendFlags": "weft.rdma.enums",
    "SendWR": "weft.rdma.work",
    "VerbsError": "weft.rdma.errors",
    "WC": "weft.rdma.work",
    "WCFlags": "weft.rdma.enums",
    "WCOpcode": "weft.rdma.enums",
    "WCStatus": "weft.rdma.enums",
    "WROpcode": "weft.rdma.enums",
    "WorkError": "weft.rdma.errors",
}


def __getattr__(name: str) -> Any:
    if name == "enums":
        return importlib.import_module("weft.rdma.enums")
    if name in _IMPORTED_LATE:
        return getattr(importlib.import_module(_IMPORTED_LATE[name]), name)
    raise AttributeError(f"module 'weft.rdma' has no attribute '{name}'")

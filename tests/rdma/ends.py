"""A connected client and server, each with one region, one completion queue and one queue pair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import weft
from weft import rdma
from weft.rdma import enums as e

LOCAL = e.IBV_ACCESS_LOCAL_WRITE
EVERYTHING = LOCAL | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
Bytes = NDArray[np.uint8]


@dataclass
class End:
    """What a program works with; `remote` is the address and rkey of the peer's region."""

    device: rdma.Device
    pd: rdma.PD
    mr: rdma.MR
    cq: rdma.CQ
    qp: rdma.QP
    remote: dict[str, int]

    @property
    def memory(self) -> Bytes:
        found: Bytes = self.mr.buf
        return found

    def request(self, opcode: rdma.WROpcode, offset: int, length: int, at: int, **options: Any) -> rdma.SendWR:
        """Return a request of a range of the own region, on the peer's from `at` on."""
        sg = [self.mr.sge(offset, length)] if length else []
        remote = {"remote_addr": self.remote["addr"] + at, "rkey": self.remote["rkey"]}
        return rdma.SendWR(sg=sg, opcode=opcode, **(remote | options))

    async def do(self, request: rdma.SendWR) -> rdma.WC:
        """Post a request, and return its completion."""
        self.qp.post_send(request)
        (completion,) = await self.cq.poll()
        return completion


Act = Callable[[End], Awaitable[None]]


def program(
    act: Act,
    peer: str | None = None,
    *,
    memory: Bytes | None = None,
    access: rdma.AccessFlags = EVERYTHING,
    receives: int = 0,
    cap: rdma.QPCap | None = None,
    cqe: int = 256,
    **settings: int,
) -> Callable[[rdma.Device], Awaitable[None]]:
    """Return a program that connects, to `peer` or to whoever asks, and acts."""

    async def run(device: rdma.Device) -> None:
        pd = rdma.PD(device)
        mr = rdma.MR(pd, np.zeros(1 << 16, np.uint8) if memory is None else memory, access)
        cq = rdma.CQ(device, cqe)
        qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq, cap or rdma.QPCap(1024, 1024)))
        for number in range(receives):
            qp.post_recv(rdma.RecvWR(number, [mr.sge(0, mr.length)]))
        own = {"addr": mr.addr, "rkey": mr.rkey}
        if peer is None:
            request = await device.listen("test").accept(qp, own, **settings)
            remote = request.private_data
        else:
            remote = await qp.connect(peer, "test", own, **settings)
        await act(End(device, pd, mr, cq, qp, remote))
        await device.rendezvous("done")

    return run


async def nothing(end: End) -> None:
    """Be there."""


def run_pair(
    fabric: weft.Fabric, client: Act, server: Act = nothing, *, of_server: Any = None, **of_client: Any
) -> None:
    """Run a client on h1 and a server on h0."""
    fabric.rdma({"h0": program(server, **(of_server or {})), "h1": program(client, "h0", **of_client)}, timeout_s=10)


__all__ = ["EVERYTHING", "LOCAL", "Act", "Bytes", "End", "nothing", "program", "run_pair"]

"""What bench_verbs_programs.py runs with `weft.rdma`: a ping-pong, as ib_write_lat's, and a stream of WRITEs.

A program of `weft.rdma` cannot look at its memory until a byte changes, so each WRITE brings an immediate.
"""

from __future__ import annotations

import statistics

import numpy as np

from weft import rdma
from weft.rdma import enums as e

ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
DEPTH = 128
"""Requests under way, as perftest has it."""


class End:
    """One of the two hosts, connected to the other."""

    def __init__(self, device: rdma.Device, size_bytes: int) -> None:
        pd = rdma.PD(device)
        self.device, self.mr = device, rdma.MR(pd, np.zeros(size_bytes, np.uint8), ACCESS)
        self.sends, self.receives = rdma.CQ(device, 2 * DEPTH), rdma.CQ(device, 2 * DEPTH)
        self.qp = rdma.QP(pd, rdma.QPInitAttr(self.sends, self.receives))
        self.remote: dict[str, int] = {}

    async def connect(self, peer: str | None) -> None:
        """Wait for the other host, or connect to the one that is named."""
        for _ in range(DEPTH):
            self.qp.post_recv(rdma.RecvWR())
        own = {"addr": self.mr.addr, "rkey": self.mr.rkey}
        if peer is None:
            self.remote = (await self.device.listen("benchmark").accept(self.qp, own)).private_data
        else:
            self.remote = await self.qp.connect(peer, "benchmark", own)

    def write(self, opcode: rdma.WROpcode) -> None:
        """Post a WRITE of the whole memory."""
        request = rdma.SendWR(sg=[self.mr.sge()], opcode=opcode)
        self.qp.post_send(request.set_wr_rdma(self.remote["rkey"], self.remote["addr"]))


async def ping_pong(device: rdma.Device, size_bytes: int, iterations: int, peer: str | None = None) -> None:
    """Write to each other in turns; the host that names its peer begins, and reports half of the median round trip."""
    end = End(device, size_bytes)
    await end.connect(peer)
    round_trips_ps = []
    for _ in range(iterations):
        began_ps = device.now_ps
        if peer is not None:
            end.write(e.IBV_WR_RDMA_WRITE_WITH_IMM)
        for received in await end.receives.poll():
            received.check()
        round_trips_ps.append(device.now_ps - began_ps)
        end.qp.post_recv(rdma.RecvWR())
        if peer is None:
            end.write(e.IBV_WR_RDMA_WRITE_WITH_IMM)
        for sent in await end.sends.poll():
            sent.check()
    if peer is not None:
        device.report("one way (us)", statistics.median(round_trips_ps) / 2e6)


async def stream(device: rdma.Device, size_bytes: int, iterations: int, peer: str | None = None) -> None:
    """Write from the host that names its peer, with as many requests under way as fit; it reports the bandwidth."""
    end = End(device, size_bytes)
    await end.connect(peer)
    if peer is None:
        for received in await end.receives.poll():  # the last WRITE
            received.check()
        return
    began_ps, posted, completed = device.now_ps, 0, 0
    while completed < iterations:
        while posted < iterations and posted - completed < DEPTH:
            posted += 1
            end.write(e.IBV_WR_RDMA_WRITE if posted < iterations else e.IBV_WR_RDMA_WRITE_WITH_IMM)
        for sent in await end.sends.poll(DEPTH):
            sent.check()
            completed += 1
    device.report("bandwidth (Gb/s)", 8 * size_bytes * iterations * 1e3 / (device.now_ps - began_ps))

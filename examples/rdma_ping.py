"""Two programs of hosts: a client writes into a server's memory, reads it back and counts there.

`weft run examples/rdma_ping.yaml`; docs/rdma.md explains them line by line.
"""

import numpy as np

from weft import rdma
from weft.rdma import enums as e


async def server(device: rdma.Device) -> None:
    """Offer memory to whoever connects, and wait for the last message."""
    pd = rdma.PD(device)
    access = (
        e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
    )
    memory = np.zeros(1 << 20, np.uint8)
    mr = rdma.MR(pd, memory, access)
    cq = rdma.CQ(device, 16)
    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))
    qp.post_recv(rdma.RecvWR(wr_id=1))  # the WRITE with immediate consumes it
    await device.listen("ping").accept(qp, {"addr": mr.addr, "rkey": mr.rkey})

    (completion,) = await cq.poll()
    completion.check()
    device.report("the client's last word", completion.imm_data)
    device.report("sum of the memory", int(memory.sum()))


async def client(device: rdma.Device, server: str = "h0", sizes: tuple[int, ...] = (64, 4096, 1 << 20)) -> None:
    """Write and read each size once, add to a counter, and say goodbye."""
    pd = rdma.PD(device)
    mr = rdma.MR(pd, np.ones(1 << 20, np.uint8), e.IBV_ACCESS_LOCAL_WRITE)
    cq = rdma.CQ(device, 16)
    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))
    remote = await qp.connect(server, "ping")

    async def take(opcode: rdma.WROpcode, size: int, **fields: int) -> rdma.WC:
        request = rdma.SendWR(sg=[mr.sge(0, size)], opcode=opcode, **fields)
        qp.post_send(request.set_wr_rdma(remote["rkey"], remote["addr"]))
        (completion,) = await cq.poll()
        return completion.check()

    for size in sizes:
        written = await take(e.IBV_WR_RDMA_WRITE, size)
        device.record("WRITE: latency (ns) by size (B)", size, written.latency_ps / 1000)
        read = await take(e.IBV_WR_RDMA_READ, size)
        device.record("READ: latency (ns) by size (B)", size, read.latency_ps / 1000)

    request = rdma.SendWR(sg=[mr.sge(0, 8)], opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD)
    qp.post_send(request.set_wr_atomic(remote["rkey"], remote["addr"], compare_add=1))
    (completion,) = await cq.poll()
    completion.check()
    device.report("the counter was", int(mr.buf[:8].view(np.uint64)[0]) & 0xFF)
    await take(e.IBV_WR_RDMA_WRITE_WITH_IMM, 0, imm_data=2026)

"""Two programs of hosts over UET's service UUD: datagrams may be lost, so they are numbered, and the receiver counts.

`weft run examples/datagrams.yaml`; docs/rdma.md describes verbs.
"""

from itertools import pairwise

from weft import rdma
from weft.rdma import enums as e

SIZE = 1024


async def sender(device: rdma.Device, receiver: str = "h3", count: int = 500) -> None:
    """Send numbered datagrams. Each completes when its packet has left, whatever becomes of it."""
    pd = rdma.PD(device)
    mr = rdma.MR(pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
    cq = rdma.CQ(device, count)
    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq, rdma.QPCap(max_send_wr=count)))
    await qp.connect(receiver, "datagrams")
    for number in range(count):
        qp.post_send(rdma.SendWR(number, [mr.sge()], e.IBV_WR_SEND_WITH_IMM, imm_data=number))
    for _ in range(count):
        (completion,) = await cq.poll()
        completion.check()
    await device.exchange(receiver, topic="all are sent")


async def receiver(device: rdma.Device, count: int = 500, patience_us: int = 100) -> None:
    """Take what comes until some time after the last datagram was sent, and report what is missing."""
    pd = rdma.PD(device)
    mr = rdma.MR(pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
    cq = rdma.CQ(device, count)
    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq, rdma.QPCap(max_recv_wr=count)))
    for number in range(count):
        qp.post_recv(rdma.RecvWR(number, [mr.sge()]))
    request = await device.listen("datagrams").accept(qp)
    await device.exchange(request.peer, topic="all are sent")
    await device.sleep(patience_us * 10**6)
    arrived = []
    while completions := cq.poll_now(16):
        arrived += [completion.check().imm_data for completion in completions]
    device.report("arrived", len(arrived))
    device.report("missing", count - len(set(arrived)))
    device.report("out of order", sum(later < earlier for earlier, later in pairwise(arrived)))

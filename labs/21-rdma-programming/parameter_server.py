"""A parameter server on verbs: workers push gradients by WRITE_WITH_IMM and pull weights by READ."""

from collections import deque

import numpy as np

from weft import rdma
from weft.rdma import enums as e

ELEMENTS = 1 << 18  # float32 weights, 1 MiB
SLOTS = 16  # gradients that a worker may have under way
FINISHED = SLOTS  # an immediate that is no slot
SIZES = (64, 1024, 4096, 16384, 65536, 262144, 1 << 20)
REPETITIONS = 32


class Server(rdma.Program):
    """Adds whatever gradients arrive to the weights, at once: no worker waits for another."""

    async def run(self, device):
        """See rdma.Program."""
        workers = device.hosts[1:]
        pd, self.cq = rdma.PD(device), rdma.CQ(device, 4096)
        self.weights = np.zeros(ELEMENTS, np.float32)
        self.gradients = np.zeros((len(workers), SLOTS, ELEMENTS), np.float32)
        weights = rdma.MR(pd, self.weights, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ)
        gradients = rdma.MR(pd, self.gradients, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
        self.queue_pairs = {}
        listener = device.listen("parameters")
        for number in range(len(workers)):
            attributes = rdma.QPInitAttr(self.cq, self.cq, rdma.QPCap(64, SLOTS + 1))
            qp = rdma.QP(pd, attributes)
            for _ in range(SLOTS + 1):
                qp.post_recv(rdma.RecvWR())
            self.queue_pairs[qp.qp_num] = number, qp
            slots = gradients.addr + number * self.gradients[0].nbytes
            await listener.accept(qp, {"weights": [weights.rkey, weights.addr], "slots": [gradients.rkey, slots]})
        running = len(workers)
        while running:
            for completion in await self.cq.poll(64):
                completion.check()
                if completion.opcode is e.IBV_WC_RECV_RDMA_WITH_IMM:
                    running -= self.take(completion)
        device.report("sum of the weights", float(self.weights.sum(dtype=np.float64)))
        await device.rendezvous("end")

    def take(self, completion):
        """Add a gradient that has arrived, and give its slot back; returns whether the worker has finished."""
        worker, qp = self.queue_pairs[completion.qp_num]
        slot = completion.imm_data
        if slot == FINISHED:
            return True
        # Step 2: add what is in the slot to the weights, without a copy; post the receive again that it has
        # consumed; tell the worker by a SEND_WITH_IMM that the slot is free.
        raise NotImplementedError("step 2: take")


class Worker(rdma.Program):
    """Pushes gradients of ones, and pulls weights. The last host measures while the others wait."""

    async def run(self, device):
        """See rdma.Program."""
        pd, self.cq = rdma.PD(device), rdma.CQ(device, 256)
        self.qp = rdma.QP(pd, rdma.QPInitAttr(self.cq, self.cq, rdma.QPCap(64, 2 * SLOTS)))
        for _ in range(2 * SLOTS):
            self.qp.post_recv(rdma.RecvWR())
        self.gradient = rdma.MR(pd, np.ones(ELEMENTS, np.float32), e.IBV_ACCESS_LOCAL_WRITE)
        self.weights = rdma.MR(pd, np.zeros(ELEMENTS, np.float32), e.IBV_ACCESS_LOCAL_WRITE)
        self.remote = await self.qp.connect("h0", "parameters")
        self.free = deque(range(SLOTS))
        measuring = device.hosts[-1]
        if device.name == measuring:
            await self.measure(device)
        for other in device.hosts[1:-1]:
            if device.name == measuring:
                await device.exchange(other, topic="measured")
            elif device.name == other:
                await device.exchange(measuring, topic="measured")
        await self.train(device)
        await device.rendezvous("end")

    def push(self, size):
        """Begin to write `size` bytes of the gradient into a free slot."""
        slot = self.free.popleft()
        rkey, slots = self.remote["slots"]
        # Step 1: a WRITE_WITH_IMM from self.gradient to this slot, which is 4 * ELEMENTS bytes long; the
        # immediate is the slot's number.
        raise NotImplementedError("step 1: push")

    async def pull(self, size):
        """Read `size` bytes of the weights; returns the completion."""
        rkey, address = self.remote["weights"]
        # Step 3: a READ into self.weights, and its completion. Slots may become free meanwhile.
        raise NotImplementedError("step 3: pull")

    async def progress(self):
        """Wait for completions; take back free slots, and return the completions of requests of ours."""
        own = []
        for completion in await self.cq.poll(64):
            if completion.check().opcode is e.IBV_WC_RECV:
                self.free.append(completion.imm_data)
                self.qp.post_recv(rdma.RecvWR())
            else:
                own.append(completion)
        return own

    async def push_many(self, size, count, under_way):
        """Push so often, with at most so many pushes whose slots are not free again; returns the completions."""
        completions = []
        begun = 0
        while len(completions) < count or len(self.free) < SLOTS:
            # Step 4: this keeps one slot busy. Keep `under_way` slots busy, as long as there is something to push.
            if begun < count and len(self.free) == SLOTS:
                self.push(size)
                begun += 1
            completions += await self.progress()
        return completions

    async def measure(self, device):
        """Latency of one push and one pull of each size, and bandwidth with one and with all slots under way."""
        for size in SIZES:
            (pushed,) = await self.push_many(size, 1, 1)
            pulled = await self.pull(size)
            device.record("push: latency (µs) by size (B)", size, pushed.latency_ps / 1e6)
            device.record("pull: latency (µs) by size (B)", size, pulled.latency_ps / 1e6)
            for under_way in (1, SLOTS):
                done = await self.push_many(size, REPETITIONS, under_way)
                time_ps = done[-1].completed_ps - done[0].posted_ps
                gbps = 8000 * size * REPETITIONS / time_ps
                device.record(f"push: Gb/s by size (B), {under_way} under way", size, gbps)

    async def train(self, device, steps=40, size=65536):
        """Push and pull in turn, without waiting for other workers."""
        began_ps = device.now_ps
        for _ in range(steps):
            while not self.free:
                await self.progress()
            self.push(size)
            await self.pull(size)
        while len(self.free) < SLOTS:
            await self.progress()
        device.report("µs a step", (device.now_ps - began_ps) / 1e6 / steps)
        rkey, slots = self.remote["slots"]
        last = rdma.SendWR(opcode=e.IBV_WR_RDMA_WRITE_WITH_IMM, imm_data=FINISHED)
        self.qp.post_send(last.set_wr_rdma(rkey, slots))
        while not await self.progress():
            pass

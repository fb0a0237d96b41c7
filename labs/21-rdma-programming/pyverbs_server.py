"""The lab's parameter server on pyverbs: the kernel's RoCEv2 (Soft-RoCE) or an adapter, in place of Weft's verbs.

    pyverbs_server.py serve [--device rxe_h0] [--workers 1]          on one host
    pyverbs_server.py work SERVER [--device rxe_h1]                  on each other, which measures and then trains

Needs pyverbs of rdma-core (the package python3-pyverbs), NumPy, and an RDMA device: docs/lab-vm.md. Queue pairs, keys
and addresses are exchanged over TCP, as a line of JSON each way. Times are those of the wall clock.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import socket
import statistics
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

try:
    from pyverbs.addr import GID, AHAttr, GlobalRoute
    from pyverbs.cq import CQ
    from pyverbs.device import Context
    from pyverbs.mr import MR
    from pyverbs.pd import PD
    from pyverbs.pyverbs_error import PyverbsError
    from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
    from pyverbs.wr import SGE, RecvWR, SendWR

    try:
        from pyverbs import enums as e
    except ImportError:  # its name from rdma-core 53 on
        from pyverbs import libibverbs_enums as e
except ImportError as error:
    sys.exit(f"pyverbs cannot be imported ({error}): apt install python3-pyverbs")

ELEMENTS = 1 << 18  # int32 weights, 1 MiB
BYTES = 4 * ELEMENTS
SLOTS = 16  # gradients that a worker may have under way
FINISHED = SLOTS  # an immediate that is no slot
SIZES = (64, 1024, 4096, 16384, 65536, 262144, BYTES)
REPETITIONS = 32
STEPS, STEP_BYTES = 40, 65536
PORT = 18515
READY = b"ready\n"
GID_INDEX_LIMIT = 16
MOST_LINE_BYTES = 4096
PATIENCE_S = 30.0
RECEIVES = 2 * SLOTS
NO_DEVICE = "no RDMA device{name}: run vagrant/soft-roce.sh --pyverbs, which makes them; docs/lab-vm.md ({reason})"


class Failed(Exception):
    """What went wrong, for people."""


class Memory:
    """A NumPy array that is registered as it is: the device reads and writes its bytes, and nobody copies them."""

    def __init__(self, pd: PD, array: np.ndarray[Any, Any], access: int) -> None:
        self.array = array
        self.address = array.ctypes.data
        self.region = MR(pd, array.nbytes, access | e.IBV_ACCESS_LOCAL_WRITE, address=self.address)

    def part(self, size: int, offset: int = 0) -> SGE:
        """Return a part of it for a request."""
        return SGE(self.address + offset, size, self.region.lkey)

    @property
    def remote(self) -> list[int]:
        """Return what another host needs to write or read it: the key and the address."""
        return [self.region.rkey, self.address]


class Device:
    """A device, its protection domain and one completion queue."""

    def __init__(self, name: str, gid_index: int | None) -> None:
        try:
            self.context = Context(name=name)
        except PyverbsError as problem:
            raise Failed(NO_DEVICE.format(name=f" {name}", reason=problem)) from None
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 1024)
        self.gid_index = self._ipv4_gid() if gid_index is None else gid_index
        self.gid = self.context.query_gid(1, self.gid_index).gid
        # Receives need memory in pyverbs, although what arrives by an immediate has none.
        self.nothing = Memory(self.pd, np.zeros(4, np.uint8), 0)

    def _ipv4_gid(self) -> int:
        """Return the index of the first GID that holds an IPv4 address: that of RoCEv2 in a lab."""
        for index in range(GID_INDEX_LIMIT):
            with contextlib.suppress(PyverbsError):
                if self.context.query_gid(1, index).gid.startswith("0000:0000:0000:0000:0000:ffff:"):
                    return index
        raise Failed(f"none of the first {GID_INDEX_LIMIT} GIDs has an IPv4 address: name one, --gid-index")

    def completions(self) -> Iterator[Any]:
        """Yield what is complete, without waiting. Raises Failed if a request failed."""
        count, found = self.cq.poll(num_entries=64)
        for completion in found[:count]:
            if completion.status != e.IBV_WC_SUCCESS:
                raise Failed(f"request {completion.wr_id} failed with status {completion.status}")
            yield completion


class Connection:
    """A queue pair to another host."""

    def __init__(self, device: Device) -> None:
        self._device = device
        capabilities = QPCap(max_send_wr=4 * SLOTS, max_recv_wr=RECEIVES)
        attributes = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=device.cq, rcq=device.cq, cap=capabilities, sq_sig_all=1)
        self.qp = QP(device.pd, attributes)
        self.psn = secrets.randbits(24)
        state = QPAttr(port_num=1)
        state.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
        self.qp.to_init(state)
        self._state = state
        for _ in range(RECEIVES):
            self.post_receive()

    @property
    def name(self) -> dict[str, Any]:
        """Return what the other side needs to connect to it."""
        return {"qp": self.qp.qp_num, "psn": self.psn, "gid": self._device.gid}

    def connect(self, other: dict[str, Any]) -> None:
        """Join it with the other side's."""
        route = GlobalRoute(dgid=GID(other["gid"]), sgid_index=self._device.gid_index, hop_limit=64)
        state = self._state
        state.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        state.path_mtu = e.IBV_MTU_1024
        state.dest_qp_num, state.rq_psn, state.sq_psn = other["qp"], other["psn"], self.psn
        state.max_rd_atomic = state.max_dest_rd_atomic = 1
        # 18: 1.07 s without an acknowledgement; those of slow processors take tens of milliseconds.
        state.min_rnr_timer, state.timeout, state.retry_cnt, state.rnr_retry = 12, 18, 7, 7
        self.qp.to_rts(state)

    def post_receive(self) -> None:
        """Make room for an immediate."""
        self.qp.post_recv(RecvWR(num_sge=1, sg=[self._device.nothing.part(4)]))

    def send(self, immediate: int) -> None:
        """Send an immediate, with four bytes that mean nothing."""
        self._post(e.IBV_WR_SEND_WITH_IMM, self._device.nothing.part(4), immediate)

    def write(self, part: SGE, rkey: int, address: int, immediate: int) -> None:
        """Write into the other side's memory and tell it by an immediate."""
        self._post(e.IBV_WR_RDMA_WRITE_WITH_IMM, part, immediate, (rkey, address))

    def read(self, part: SGE, rkey: int, address: int) -> None:
        """Read the other side's memory."""
        self._post(e.IBV_WR_RDMA_READ, part, 0, (rkey, address))

    def _post(self, opcode: int, part: SGE, immediate: int, remote: tuple[int, int] | None = None) -> None:
        request = SendWR(
            wr_id=opcode,
            opcode=opcode,
            num_sge=1,
            imm_data=immediate,
            sg=[part],
            send_flags=e.IBV_SEND_SIGNALED,
        )
        if remote is not None:
            request.set_wr_rdma(*remote)
        self.qp.post_send(request)


def told(stream: socket.socket, mine: dict[str, Any]) -> dict[str, Any]:
    """Give the other side a line of JSON and return its own. Raises Failed."""
    stream.settimeout(PATIENCE_S)
    stream.sendall(json.dumps(mine).encode() + b"\n")
    # Unbuffered: what follows the line is for others to read.
    with stream.makefile("rb", buffering=0) as lines:
        line = lines.readline(MOST_LINE_BYTES)
    try:
        other = json.loads(line)
        if not {"qp", "psn", "gid"} <= other.keys():
            raise ValueError
    except (ValueError, AttributeError):
        raise Failed(f"the other side says {line[:80]!r}, which is no queue pair") from None
    return dict(other)


class Server:
    """Adds whatever gradients arrive to the weights, at once: no worker waits for another."""

    def __init__(self, device: Device, workers: int) -> None:
        self._device = device
        self.weights = Memory(device.pd, np.zeros(ELEMENTS, np.int32), e.IBV_ACCESS_REMOTE_READ)
        self.slots = Memory(device.pd, np.zeros((workers, SLOTS, ELEMENTS), np.int32), e.IBV_ACCESS_REMOTE_WRITE)
        self._workers: dict[int, tuple[int, Connection]] = {}

    def admit(self, stream: socket.socket) -> None:
        """Connect with the next worker."""
        number = len(self._workers)
        connection = Connection(self._device)
        rkey, address = self.slots.remote
        mine = {"weights": self.weights.remote, "slots": [rkey, address + number * SLOTS * BYTES]}
        connection.connect(told(stream, connection.name | mine))
        # The worker may write once it knows that this side is ready.
        stream.sendall(READY)
        self._workers[connection.qp.qp_num] = number, connection

    def run(self) -> int:
        """Serve until all workers have finished; returns the sum of the weights."""
        running = len(self._workers)
        while running:
            for completion in self._device.completions():
                if completion.opcode == e.IBV_WC_RECV_RDMA_WITH_IMM:
                    running -= self._take(completion)
        return int(self.weights.array.sum(dtype=np.int64))

    def _take(self, completion: Any) -> bool:
        """Add a gradient, and give its slot back; returns whether the worker has finished."""
        worker, connection = self._workers[completion.qp_num]
        connection.post_receive()
        slot = completion.imm_data
        if slot == FINISHED:
            connection.send(FINISHED)
            return True
        count = completion.byte_len // 4
        self.weights.array[:count] += self.slots.array[worker, slot, :count]
        connection.send(slot)
        return False


class Worker:
    """Pushes gradients of ones, and pulls weights."""

    def __init__(self, device: Device, stream: socket.socket) -> None:
        self._device = device
        self._gradient = Memory(device.pd, np.ones(ELEMENTS, np.int32), 0)
        self._weights = Memory(device.pd, np.zeros(ELEMENTS, np.int32), 0)
        self._connection = Connection(device)
        self._remote = told(stream, self._connection.name)
        self._connection.connect(self._remote)
        if stream.recv(len(READY), socket.MSG_WAITALL) != READY:
            raise Failed("the server ended while it connected")
        self._free = deque(range(SLOTS))
        self._finished = False
        self.pushed_bytes = 0

    def push(self, size: int) -> None:
        """Begin to write `size` bytes of the gradient into a free slot."""
        slot = self._free.popleft()
        rkey, slots = self._remote["slots"]
        self._connection.write(self._gradient.part(size), rkey, slots + slot * BYTES, slot)
        self.pushed_bytes += size

    def pull(self, size: int) -> None:
        """Read `size` bytes of the weights; returns when they are there. Slots may become free meanwhile."""
        self._connection.read(self._weights.part(size), *self._remote["weights"])
        while e.IBV_WC_RDMA_READ not in self.progress():
            pass

    def progress(self) -> list[int]:
        """Take back free slots; return the opcodes of own requests that are complete."""
        own = []
        for completion in self._device.completions():
            if completion.opcode == e.IBV_WC_RECV:
                self._connection.post_receive()
                if completion.imm_data == FINISHED:
                    self._finished = True
                else:
                    self._free.append(completion.imm_data)
            else:
                own.append(completion.opcode)
        return own

    def push_many(self, size: int, count: int, under_way: int) -> float:
        """Push so often, with at most so many slots taken; returns the seconds until all are free again."""
        begun, written = 0, 0
        began_s = time.perf_counter()
        while written < count or len(self._free) < SLOTS:
            while begun < count and SLOTS - len(self._free) < under_way:
                self.push(size)
                begun += 1
            written += self.progress().count(e.IBV_WC_RDMA_WRITE)
        return time.perf_counter() - began_s

    def pushed_us(self, size: int) -> float:
        """Return the time of one push, until its acknowledgement, in µs."""
        began_s = time.perf_counter()
        self.push(size)
        while e.IBV_WC_RDMA_WRITE not in self.progress():
            pass
        took_us = (time.perf_counter() - began_s) * 1e6
        while len(self._free) < SLOTS:
            self.progress()
        return took_us

    def pulled_us(self, size: int) -> float:
        """Return the time of one pull, in µs."""
        began_s = time.perf_counter()
        self.pull(size)
        return (time.perf_counter() - began_s) * 1e6

    def measure(self) -> None:
        """Print latencies and bandwidths of each size: medians, and with one and with all slots under way."""
        print(f"{'size (B)':>10}{'push (µs)':>12}{'pull (µs)':>12}{'1 under way (Gb/s)':>20}{'16 (Gb/s)':>12}")
        for size in SIZES:
            pushed, pulled = (
                statistics.median(one(size) for _ in range(REPETITIONS)) for one in (self.pushed_us, self.pulled_us)
            )
            rates = [
                8e-9 * size * REPETITIONS / self.push_many(size, REPETITIONS, under_way) for under_way in (1, SLOTS)
            ]
            print(f"{size:>10,}{pushed:>12.1f}{pulled:>12.1f}{rates[0]:>20.3f}{rates[1]:>12.3f}")

    def train(self) -> None:
        """Push and pull in turn, without waiting for other workers; then say good-bye."""
        began_s = time.perf_counter()
        for _ in range(STEPS):
            while not self._free:
                self.progress()
            self.push(STEP_BYTES)
            self.pull(STEP_BYTES)
        while len(self._free) < SLOTS:
            self.progress()
        print(f"{(time.perf_counter() - began_s) * 1e6 / STEPS:.1f} µs a step")
        rkey, slots = self._remote["slots"]
        self._connection.write(self._gradient.part(4), rkey, slots, FINISHED)
        while not self._finished:
            self.progress()


def serve(options: argparse.Namespace) -> None:
    """Serve so many workers, and print the sum of the weights."""
    device = Device(options.device, options.gid_index)
    server = Server(device, options.workers)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("", options.port)))
        for _ in range(options.workers):
            stream, _ = listener.accept()
            server.admit(stack.enter_context(stream))
        print(f"sum of the weights: {server.run():,}")


def work(options: argparse.Namespace) -> None:
    """Measure and train."""
    device = Device(options.device, options.gid_index)
    with socket.create_connection((options.server, options.port), PATIENCE_S) as stream:
        worker = Worker(device, stream)
        worker.measure()
        worker.train()
    print(f"elements pushed: {worker.pushed_bytes // 4:,}")


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run, device in (("serve", serve, "rxe_h0"), ("work", work, "rxe_h1")):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        if name == "work":
            command.add_argument("server", help="name or address of the server's host")
        else:
            command.add_argument("--workers", type=int, default=1, choices=range(1, 9))
        command.add_argument("--device", default=device, help="of ibv_devices")
        command.add_argument("--gid-index", type=int, help="by default the first with an IPv4 address")
        command.add_argument("--port", type=int, default=PORT, help="of TCP, for the exchange")
    options = parser.parse_args()
    try:
        options.run(options)
    except (Failed, PyverbsError, OSError) as problem:
        sys.exit(f"pyverbs_server: {problem}")


if __name__ == "__main__":
    main()

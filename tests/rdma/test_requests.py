"""What requests do to memory: against plain arrays, with and without faults."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from tests.rdma.ends import Bytes, End, program, run_pair
from weft import rdma
from weft.rdma import enums as e

SIZE = 8192
WORD = 8


@dataclass(frozen=True)
class Step:
    """A request: bytes of the source area at `offset` to, or from, the peer's at `at`."""

    opcode: rdma.WROpcode
    offset: int = 0
    at: int = 0
    length: int = 0
    numbers: tuple[int, int] = (0, 0)


def _steps() -> st.SearchStrategy[list[Step]]:
    ranges = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE), st.integers(0, SIZE)).map(
        lambda each: (each[0], each[1], min(each[2], SIZE - each[0], SIZE - each[1]))
    )
    moved = [opcode for opcode in rdma.WROpcode if "ATOMIC" not in opcode.name]
    moves = st.tuples(st.sampled_from(moved), ranges).map(lambda each: Step(each[0], *each[1]))
    number = st.integers(0, 2**64 - 1) | st.integers(0, 3)
    atomics = st.tuples(
        st.sampled_from([e.IBV_WR_ATOMIC_CMP_AND_SWP, e.IBV_WR_ATOMIC_FETCH_AND_ADD]),
        st.integers(0, 3),
        st.tuples(number, number),
    ).map(lambda each: Step(each[0], at=each[1] * WORD, length=WORD, numbers=each[2]))
    return st.lists(moves | atomics, min_size=1, max_size=12)


@dataclass
class Model:
    """Both ends as plain arrays: what the server's memory, the client's reads and the server's receives should be."""

    source: Bytes
    memory: Bytes = field(default_factory=lambda: np.zeros(SIZE, np.uint8))
    reads: list[bytes] = field(default_factory=list)
    received: list[tuple[rdma.WCOpcode, int, int | None, bytes]] = field(default_factory=list)

    def take(self, step: Step, immediate: int) -> None:
        sent = self.source[step.offset : step.offset + step.length].tobytes()
        place = slice(step.at, step.at + step.length)
        match step.opcode:
            case e.IBV_WR_RDMA_WRITE | e.IBV_WR_RDMA_WRITE_WITH_IMM:
                self.memory[place] = np.frombuffer(sent, np.uint8)
                if step.opcode is e.IBV_WR_RDMA_WRITE_WITH_IMM:
                    self.received.append((e.IBV_WC_RECV_RDMA_WITH_IMM, step.length, immediate, b""))
            case e.IBV_WR_SEND | e.IBV_WR_SEND_WITH_IMM:
                number = immediate if step.opcode is e.IBV_WR_SEND_WITH_IMM else None
                self.received.append((e.IBV_WC_RECV, step.length, number, sent))
            case e.IBV_WR_RDMA_READ:
                self.reads.append(self.memory[place].tobytes())
            case _:
                found = int(self.memory[place].view(np.uint64)[0])
                compare_add, swap = step.numbers
                self.reads.append(self.memory[place].tobytes())
                if step.opcode is e.IBV_WR_ATOMIC_FETCH_AND_ADD:
                    self.memory[place].view(np.uint64)[0] = (found + compare_add) % 2**64
                elif found == compare_add:
                    self.memory[place].view(np.uint64)[0] = swap


def _carry_out(fabric: weft.Fabric, steps: list[Step]) -> None:
    model = Model(np.random.default_rng(1).integers(0, 256, SIZE, np.uint8))
    for number, step in enumerate(steps):
        model.take(step, number)
    reads: list[bytes] = []
    received: list[tuple[rdma.WCOpcode, int, int | None, bytes]] = []
    memory = np.zeros(SIZE, np.uint8)

    async def client(end: End) -> None:
        results = rdma.MR(end.pd, np.zeros(len(steps) * SIZE, np.uint8), e.IBV_ACCESS_LOCAL_WRITE)
        waiting = 0
        for number, step in enumerate(steps):
            is_read = step.opcode in (
                e.IBV_WR_RDMA_READ,
                e.IBV_WR_ATOMIC_CMP_AND_SWP,
                e.IBV_WR_ATOMIC_FETCH_AND_ADD,
            )
            if waiting and not is_read:
                # What follows a READ may overtake its response (the specification's ordering rules).
                waiting = await _complete(end, waiting)
            request = end.request(step.opcode, step.offset, step.length, step.at, imm_data=number, wr_id=number)
            if is_read:
                request.sg = [results.sge(number * SIZE, step.length)] if step.length else []
            request.compare_add, request.swap = step.numbers
            end.qp.post_send(request)
            waiting += 1
        await _complete(end, waiting)
        for number, step in enumerate(steps):
            if "READ" in step.opcode.name or "ATOMIC" in step.opcode.name:
                reads.append(results.read(step.length, number * SIZE))

    async def server(end: End) -> None:
        region = rdma.MR(end.pd, np.zeros((len(steps), SIZE), np.uint8), e.IBV_ACCESS_LOCAL_WRITE)
        for number in range(len(steps)):
            end.qp.post_recv(rdma.RecvWR(number, [region.sge(number * SIZE, SIZE)]))
        for _ in model.received:
            (wc,) = await end.cq.poll()
            wc.check()
            is_send = wc.opcode is e.IBV_WC_RECV
            data = region.read(wc.byte_len, wc.wr_id * SIZE) if is_send else b""
            number = wc.imm_data if wc.wc_flags & e.IBV_WC_WITH_IMM else None
            received.append((wc.opcode, wc.byte_len, number, data))

    run_pair(fabric, client, server, of_server={"memory": memory}, memory=model.source)
    assert np.array_equal(memory, model.memory)
    assert reads == model.reads
    assert received == model.received


async def _complete(end: End, count: int) -> int:
    for _ in range(count):
        (await end.cq.poll())[0].check()
    return 0


OPTIONS = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@OPTIONS
@given(steps=_steps())
def test_requests_do_what_they_do_to_plain_arrays(fabric: weft.Fabric, steps: list[Step]) -> None:
    _carry_out(fabric, steps)


@OPTIONS
@given(steps=_steps())
def test_faults_of_the_network_change_nothing(faulty_fabric: weft.Fabric, steps: list[Step]) -> None:
    _carry_out(faulty_fabric, steps)


def test_a_read_sees_what_was_written_before_it(faulty_fabric: weft.Fabric) -> None:
    async def client(end: End) -> None:
        end.memory[:4096] = 7
        end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 4096, 0, send_flags=0))
        wc = await end.do(end.request(e.IBV_WR_RDMA_READ, 8192, 4096, 0))
        assert wc.check().opcode is e.IBV_WC_RDMA_READ
        assert (end.memory[8192 : 8192 + 4096] == 7).all()

    run_pair(faulty_fabric, client)


def test_an_immediate_comes_after_everything_written_before_it(faulty_fabric: weft.Fabric) -> None:
    async def client(end: End) -> None:
        end.memory[:] = 5
        for number in range(15):
            end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 4096, 4096 * number, send_flags=0))
        wc = await end.do(end.request(e.IBV_WR_RDMA_WRITE_WITH_IMM, 0, 4096, 4096 * 15, imm_data=3))
        wc.check()

    async def server(end: End) -> None:
        (wc,) = await end.cq.poll()
        assert (wc.opcode, wc.imm_data, wc.byte_len) == (e.IBV_WC_RECV_RDMA_WITH_IMM, 3, 4096)
        assert (end.memory == 5).all()

    run_pair(faulty_fabric, client, server, of_server={"receives": 1})


def test_atomics_of_many_clients_lose_nothing(faulty_fabric: weft.Fabric) -> None:
    counter = np.zeros(1, np.uint64)
    found: list[int] = []
    additions = 20

    async def client(device: rdma.Device) -> None:
        pd = rdma.PD(device)
        mr = rdma.MR(pd, np.zeros(1, np.uint64), e.IBV_ACCESS_LOCAL_WRITE)
        cq = rdma.CQ(device)
        qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))
        remote = await qp.connect("h0", "counter")
        for _ in range(additions):
            request = rdma.SendWR(0, [mr.sge()], e.IBV_WR_ATOMIC_FETCH_AND_ADD)
            qp.post_send(request.set_wr_atomic(remote["rkey"], remote["addr"], 1))
            (await cq.poll())[0].check()
            found.append(int(mr.buf[0]))
        await device.rendezvous("done")

    async def server(device: rdma.Device) -> None:
        pd = rdma.PD(device)
        mr = rdma.MR(pd, counter, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_ATOMIC)
        cq = rdma.CQ(device)
        listener = device.listen("counter")
        for _ in device.hosts[1:]:
            await listener.accept(rdma.QP(pd, rdma.QPInitAttr(cq, cq)), {"addr": mr.addr, "rkey": mr.rkey})
        await device.rendezvous("done")

    faulty_fabric.rdma({"h0": server, "others": client}, timeout_s=10)
    assert counter[0] == 3 * additions
    assert sorted(found) == list(range(3 * additions))


@pytest.mark.parametrize("sizes", [(64, 1 << 14)])
def test_what_requests_took_is_in_the_result(fabric: weft.Fabric, sizes: tuple[int, ...]) -> None:
    async def client(end: End) -> None:
        for size in sizes:
            wc = await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, size, 0))
            end.device.record("latency", size, wc.latency_ps)
        end.device.report("sizes", len(sizes))
        end.device.report("state", end.qp.state.name)

    async def server(end: End) -> None:
        pass

    result = fabric.rdma({"h0": program(server), "h1": program(client, "h0")})
    (writes,) = result.operations
    assert (writes.opcode, writes.operations, writes.bytes) == ("IBV_WR_RDMA_WRITE", len(sizes), sum(sizes))
    client_result = result.programs[1]
    recorded = [int(y) for _, y in client_result.series["latency"]]
    assert writes.latency_ps is not None
    assert [writes.latency_ps.least, writes.latency_ps.largest] == recorded
    assert client_result.values == {"sizes": 2}
    assert client_result.texts == {"state": "IBV_QPS_RTS"}

"""Programs over each transport: what it carries does the same, and what it does not is refused at the post."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from tests.rdma.conftest import FAULTS, one_switch
from tests.rdma.ends import LOCAL, End, run_pair
from tests.refusals import refused
from weft import rdma, topologies
from weft.clocks.lab import Lab
from weft.paths import ROOT
from weft.rdma import enums as e
from weft.rdma.work import OPERATIONS
from weft.results.rdma import RdmaResult
from weft.scenario import TransportSection
from weft.traffic.transports.registry import TRANSPORT_KINDS

PING = str(ROOT / "examples" / "rdma_ping.py")
SLOT = 5000
SLOTS = 12
PROTOCOLS = sorted(TRANSPORT_KINDS)


def running(protocol: str, *, planes: int = 1, has_faults: bool = False, clock: str = "virtual") -> weft.Fabric:
    return weft.Fabric(
        one_switch(planes=planes),
        seed=1,
        clock=clock,
        int_telemetry=False,
        transport=TransportSection(protocol=protocol),
        faults=FAULTS if has_faults else None,
    )


@pytest.fixture(scope="module", params=[(name, planes) for name in PROTOCOLS for planes in (1, 2)], ids=str)
def faulty(request: pytest.FixtureRequest) -> Iterator[weft.Fabric]:
    protocol, planes = request.param
    with running(protocol, planes=planes, has_faults=True) as fabric:
        yield fabric


def test_transports_name_their_operations_as_verbs_do() -> None:
    assert {each for kind in TRANSPORT_KINDS.values() for each in kind.operations} == set(OPERATIONS.values())


WRITES = st.lists(
    st.tuples(st.booleans(), st.integers(0, SLOT), st.integers(0, SLOT)).map(
        lambda each: (each[0], each[1], min(each[2], SLOT - each[1]))
    ),
    min_size=1,
    max_size=SLOTS,
)


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(writes=WRITES)
def test_writes_do_what_they_do_to_plain_arrays(faulty: weft.Fabric, writes: list[tuple[bool, int, int]]) -> None:
    """Each has a slot of the memory, as transports that do not keep the order allow."""
    source = np.random.default_rng(1).integers(0, 256, SLOTS * SLOT, np.uint8)
    expected, memory = np.zeros(SLOTS * SLOT, np.uint8), np.zeros(SLOTS * SLOT, np.uint8)
    found: list[tuple[int, int, int]] = []
    for slot, (_, offset, length) in enumerate(writes):
        begin = slot * SLOT + offset
        expected[begin : begin + length] = source[begin : begin + length]

    async def client(end: End) -> None:
        for slot, (has_immediate, offset, length) in enumerate(writes):
            opcode = e.IBV_WR_RDMA_WRITE_WITH_IMM if has_immediate else e.IBV_WR_RDMA_WRITE
            begin = slot * SLOT + offset
            end.qp.post_send(end.request(opcode, begin, length, begin, imm_data=slot, wr_id=slot))
        completed = [(await end.cq.poll())[0].check().wr_id for _ in writes]
        assert completed == list(range(len(writes)))

    async def server(end: End) -> None:
        for _ in range(sum(has_immediate for has_immediate, _, _ in writes)):
            wc = (await end.cq.poll())[0].check()
            # Everything that was posted up to the immediate is there.
            so_far = (wc.imm_data + 1) * SLOT
            assert np.array_equal(end.memory[:so_far], expected[:so_far])
            found.append((wc.wr_id, wc.imm_data, wc.byte_len))

    run_pair(faulty, client, server, of_server={"memory": memory, "receives": len(writes)}, memory=source)
    assert np.array_equal(memory, expected)
    immediates = [(slot, each[2]) for slot, each in enumerate(writes) if each[0]]
    assert found == [(number, slot, length) for number, (slot, length) in enumerate(immediates)]


async def _store(device: rdma.Device, slots: int = 20) -> None:
    pd, cq = rdma.PD(device), rdma.CQ(device)
    memory = np.zeros((len(device.hosts), slots, SLOT), np.uint8)
    mr = rdma.MR(pd, memory, LOCAL | e.IBV_ACCESS_REMOTE_WRITE)
    listener = device.listen()
    for _ in device.hosts[1:]:
        qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))
        for number in range(slots):
            qp.post_recv(rdma.RecvWR(number))
        await listener.accept(qp, {"addr": mr.addr, "rkey": mr.rkey})
    received = [(await cq.poll())[0].check().imm_data for _ in range(slots * (len(device.hosts) - 1))]
    device.report("received", sum(received))
    device.report("memory", int(memory.sum()))


async def _clients(device: rdma.Device, slots: int = 20) -> None:
    pd, cq = rdma.PD(device), rdma.CQ(device)
    own = device.hosts.index(device.name)
    mr = rdma.MR(pd, np.full(SLOT, own, np.uint8), LOCAL)
    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))
    remote = await qp.connect("h0")
    for number in range(slots):
        at = remote["addr"] + (own * slots + number) * SLOT
        request = rdma.SendWR(number, [mr.sge()], e.IBV_WR_RDMA_WRITE_WITH_IMM, imm_data=number)
        qp.post_send(request.set_wr_rdma(remote["rkey"], at))
    for _ in range(slots):
        (await cq.poll())[0].check()


def _incast(protocol: str, planes: int, workers: int) -> RdmaResult:
    topology = topologies.leaf_spine(planes=planes, leaves=4, spines=2, hosts_per_leaf=1)
    transport = TransportSection(protocol=protocol)
    with weft.Fabric(
        topology, seed=2, clock="virtual", int_telemetry=False, transport=transport, workers=workers
    ) as fabric:
        return fabric.rdma({"h0": _store, "others": _clients})


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("planes", [1, 2])
def test_all_transports_give_the_same_results(protocol: str, planes: int) -> None:
    result = _incast(protocol, planes, 1)
    assert result.programs[0].values == {"received": 3 * sum(range(20)), "memory": (1 + 2 + 3) * 20 * SLOT}
    assert {each.opcode: (each.operations, each.bytes) for each in result.operations} == {
        "IBV_WC_RECV_RDMA_WITH_IMM": (60, 60 * SLOT),
        "IBV_WR_RDMA_WRITE_WITH_IMM": (60, 60 * SLOT),
    }
    assert _incast(protocol, planes, 3).as_dict() == result.as_dict()


def test_a_queue_pair_of_mrc_uses_all_planes() -> None:
    with running("mrc", planes=2) as fabric:

        async def client(end: End) -> None:
            for number in range(16):
                await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 4096, number * 4096))

        run_pair(fabric, client)
        (sender,) = [host for host in fabric.hosts.stats() if host["name"] == "h1"]
        sent = [plane["transmit"]["transmitted"]["bytes"] for plane in sender["planes"]]
    assert min(sent) > 0.4 * sum(sent)


def test_a_program_names_the_ev_profile_of_a_queue_pair() -> None:
    values: set[int] = set()
    with running("mrc") as fabric:
        fabric.modify_ev_profile("h1", 4, state="offline", ev_mode="auto", ev_count=3)
        fabric.modify_ev_profile("h1", 4, state="online", ev_min_active=1, ev_event_mask=())

        async def client(end: End) -> None:
            (await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 64, 0))).check()
            (profile,) = [each for each in fabric.ev_profiles("h1") if each["profile_id"] == 4]
            values.update((profile["queue_pairs"], profile["ev_count"] or 0))

        run_pair(fabric, client, ev_profile_id=4)
        assert values == {1, 3}
        with pytest.raises(weft.WeftError, match="EV profile 5 is init"):
            run_pair(fabric, client, ev_profile_id=5)
    with running("uet") as fabric, pytest.raises(weft.WeftError, match="uet has no EVs"):
        run_pair(fabric, client, ev_profile_id=4)


def carried_by(lab: Lab) -> list[str]:
    operations = lab.options.transport.kind.operations
    return [opcode.name for opcode, operation in OPERATIONS.items() if operation in operations]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("opcode", rdma.WROpcode)
def test_what_a_transport_does_not_carry_is_refused_at_the_post(protocol: str, opcode: rdma.WROpcode) -> None:
    with running(protocol) as fabric:
        carried = carried_by(fabric.lab)

        async def client(end: End) -> None:
            if opcode.name in carried:
                (await end.do(end.request(opcode, 0, 8, 0))).check()
                return
            with refused(
                rdma.VerbsError,
                problem=f"{opcode.name}: transport.protocol: {protocol} carries no",
                valid=", ".join(carried),
            ) as raised:
                end.qp.post_send(end.request(opcode, 0, 8, 0))
            assert raised.value.errno == errno.EOPNOTSUPP
            # The queue pair goes on, and no slot is taken.
            (await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0))).check()

        run_pair(fabric, client, of_server={"receives": 1})


@pytest.mark.parametrize("protocol", ["mrc", "uet"])
@pytest.mark.parametrize("has_faults", [False, True])
def test_an_immediate_without_a_receive_fails_both_ends(protocol: str, has_faults: bool) -> None:
    """There is no receiver-not-ready. What was posted before arrives, and what was posted after is flushed."""
    with running(protocol, has_faults=has_faults) as fabric:
        memory = np.zeros(1 << 16, np.uint8)

        async def client(end: End) -> None:
            end.memory[:] = 7
            for number in range(3):
                opcode = e.IBV_WR_RDMA_WRITE_WITH_IMM if number else e.IBV_WR_RDMA_WRITE
                end.qp.post_send(end.request(opcode, 0, 4096, number * 4096, wr_id=number))
            end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 64, 40_000, wr_id=3))
            found = [(await end.cq.poll())[0] for _ in range(4)]
            assert [(wc.wr_id, wc.status) for wc in found] == [
                (0, e.IBV_WC_SUCCESS),
                (1, e.IBV_WC_SUCCESS),
                (2, e.IBV_WC_REM_OP_ERR),
                (3, e.IBV_WC_WR_FLUSH_ERR),
            ]

        async def server(end: End) -> None:
            assert (await end.cq.poll())[0].check().opcode is e.IBV_WC_RECV_RDMA_WITH_IMM
            while end.qp.state is not e.IBV_QPS_ERR:
                await end.device.sleep(10**6)
            end.qp.post_recv(rdma.RecvWR(9))
            (wc,) = await end.cq.poll()
            assert (wc.wr_id, wc.status) == (9, e.IBV_WC_WR_FLUSH_ERR)

        run_pair(fabric, client, server, of_server={"memory": memory, "receives": 1})
        assert (memory[: 2 * 4096] == 7).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_closing_a_failed_end_flushes_its_receives(protocol: str) -> None:
    with running(protocol) as fabric:

        async def client(end: End) -> None:
            await end.device.rendezvous("ready")
            (await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 64, 0, rkey=0xDEAD))).check()

        async def server(end: End) -> None:
            await end.device.rendezvous("ready")
            found = [(await end.cq.poll())[0] for _ in range(3)]
            assert [(wc.wr_id, wc.status) for wc in found] == [(each, e.IBV_WC_WR_FLUSH_ERR) for each in range(3)]

        with refused(rdma.WorkError, problem="IBV_WC_REM_ACCESS_ERR"):
            run_pair(fabric, client, server, of_server={"receives": 3})


@pytest.mark.mininet
def test_programs_run_over_mrc_in_mininet(tmp_path: object) -> None:
    file = f"{__file__}"
    with running("mrc", planes=2, clock="real") as fabric:
        result = fabric.rdma({"h0": f"{file}:_store", "others": f"{file}:_clients"}, timeout_s=60)
        assert result.programs[0].values == {"received": 3 * sum(range(20)), "memory": (1 + 2 + 3) * 20 * SLOT}

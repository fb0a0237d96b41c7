"""Services RUDI and UUD of UET in scenarios: what they carry is right, what is lost is seen, the rest is refused."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
import pytest

import weft
from tests.rdma.ends import LOCAL, End, run_pair
from tests.refusals import refused
from tests.weft.test_uet import CROWDED, TOPOLOGY, US, totals
from weft import BadInputError, Fabric, rdma, topologies
from weft.engine import path_choice_names
from weft.paths import ROOT
from weft.rdma import enums as e
from weft.results.rdma import RDMA, DatagramsResult
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.run.traffic_kinds.remote_memory import RemoteMemoryTraffic
from weft.scenario import Change, FaultsSection, TransportSection, TrimmingSection, load_scenario, parse_scenario
from weft.scenario.traffic import TRAFFIC_KINDS

RUDI = TransportSection(protocol="uet", service="rudi")
UUD = TransportSection(protocol="uet", service="uud")
FAULTS = FaultsSection(loss=0.01, duplicate=0.01, delay_probability=0.01, extra_delay=5 * US)
EXAMPLE = ROOT / "examples" / "datagrams.yaml"


def made(transport: TransportSection, **options: Any) -> Fabric:
    return Fabric(TOPOLOGY, clock="virtual", seed=1, int_telemetry=False, transport=transport, **options)


@pytest.mark.parametrize("has_faults", [False, True])
@pytest.mark.parametrize("ip_version", [4, 6])
def test_flows_over_rudi_arrive(ip_version: int, has_faults: bool) -> None:
    with made(RUDI, ip_version=ip_version, faults=FAULTS if has_faults else None) as fabric:
        result = fabric.permutation(400_000)
        received = totals(fabric)["data_bytes_received"]
        incast = fabric.incast("h0", 100_000, queue_pairs=2)
    assert result.flows == 4
    # What comes twice is written twice.
    assert received > 1_600_000 if has_faults else received == 1_600_000
    assert (result.retransmissions > 0) == has_faults
    assert (incast.flows, incast.bytes_delivered) == (3, 300_000)


@pytest.mark.parametrize("has_faults", [False, True])
def test_a_workload_over_rudi_ends_with_its_last_flow(has_faults: bool) -> None:
    """Receivers, which learn of no flow, open their ends whether or not they send."""
    with made(RUDI, faults=FAULTS if has_faults else None) as fabric:
        result = fabric.workload("websearch", 0.5, 300 * US)
        found = totals(fabric)
    assert result.flows > 4
    assert found["data_bytes_received"] >= result.bytes_delivered
    assert found["pdcs_opened"] == 0


def test_an_incast_over_rudi_with_trimming_drops_nothing() -> None:
    trimming = TrimmingSection(classes=[3])
    with Fabric(CROWDED, clock="virtual", int_telemetry=False, transport=RUDI, trimming=trimming) as fabric:
        fabric.incast("h0", 200_000)
        found = totals(fabric)
    assert found["trim_nacks_received"] == found["trim_nacks_sent"] > 0
    assert found["timeouts"] == 0


@pytest.mark.parametrize("size", [64, 4096, 20_000])
def test_a_read_over_rudi_takes_what_the_closed_form_says(size: int) -> None:
    with made(RUDI) as fabric:
        item = RemoteMemoryTraffic.model_validate(
            {"remote_memory": [3], "clients": [0], "size": size, "reads": 4, "outstanding": 1}
        )
        (found,) = fabric.run_together([item.prepare_task(4, 1)(fabric)])
    assert found.latency_ps.least == pytest.approx(found.unloaded_ps, rel=0 if size == 64 else 0.01)


def test_an_incast_of_reads_over_rudi_is_whole_whatever_links_and_switches_do() -> None:
    crowded = topologies.leaf_spine(
        planes=1, leaves=2, spines=2, hosts_per_leaf=4, host_rate_bps=100 * 10**9, queue_capacity_bytes=64 << 10
    )
    options: dict[str, Any] = {"transport": RUDI, "trimming": TrimmingSection(classes=[3]), "faults": FAULTS}
    with Fabric(crowded, clock="virtual", int_telemetry=False, **options) as fabric:
        item = RemoteMemoryTraffic.model_validate(
            {"remote_memory": [1, 2, 3, 4, 5, 6, 7], "clients": [0], "size": 60_000, "reads": 70, "outstanding": 28}
        )
        (found,) = fabric.run_together([item.prepare_task(8, 1)(fabric)])
        counted = totals(fabric)
    assert found.reads == 70
    assert counted["data_bytes_received"] >= 70 * 60_000
    assert counted["responses_trimmed"] > 0
    assert counted["wrong_responses"] == 0


@pytest.mark.parametrize("has_faults", [False, True])
def test_programs_write_and_read_over_rudi(has_faults: bool) -> None:
    with made(RUDI, faults=FAULTS if has_faults else None) as fabric:
        source = np.random.default_rng(1).integers(0, 256, 1 << 16, np.uint8)
        memory = np.zeros(1 << 16, np.uint8)

        async def client(end: End) -> None:
            (await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 1 << 15, 0))).check()
            # A READ of what the peer had, and one of what has just been written.
            (await end.do(end.request(e.IBV_WR_RDMA_READ, 1 << 15, 1 << 14, 1 << 15))).check()
            (await end.do(end.request(e.IBV_WR_RDMA_READ, 3 << 14, 1 << 14, 0))).check()
            assert (end.memory[1 << 15 : 3 << 14] == 0).all()
            assert np.array_equal(end.memory[3 << 14 :], end.memory[: 1 << 14])

        expected = source[: 1 << 15].copy()
        run_pair(fabric, client, of_server={"memory": memory}, memory=source)
        assert fabric.summary().warnings == []
    assert np.array_equal(memory[: 1 << 15], expected)


@pytest.mark.parametrize(
    ("opcode", "words"),
    [
        (e.IBV_WR_RDMA_WRITE_WITH_IMM, "carries no WRITEs with immediate"),
        (e.IBV_WR_SEND, "carries no SENDs"),
        (e.IBV_WR_ATOMIC_FETCH_AND_ADD, "carries no atomic operations"),
    ],
)
def test_programs_over_rudi_are_refused_what_must_not_happen_twice(opcode: rdma.WROpcode, words: str) -> None:
    with made(RUDI) as fabric:

        async def client(end: End) -> None:
            with refused(
                rdma.VerbsError,
                problem=f"{opcode.name}: transport.service: rudi {words}",
                valid="IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ",
            ) as raised:
                end.qp.post_send(end.request(opcode, 0, 8, 0))
            assert raised.value.errno == errno.EOPNOTSUPP
            with refused(
                rdma.VerbsError,
                problem="a receive: transport.service: rudi carries nothing that takes one",
                valid="IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ",
            ):
                end.qp.post_recv(rdma.RecvWR(1))
            (await end.do(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0))).check()

        run_pair(fabric, client)


async def _send(device: rdma.Device, count: int, size: int) -> None:
    pd, cq = rdma.PD(device), rdma.CQ(device, count)
    mr = rdma.MR(pd, np.arange(size, dtype=np.uint8), LOCAL)
    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq, rdma.QPCap(count, 1)))
    await qp.connect("h3")
    for number in range(count):
        qp.post_send(rdma.SendWR(number, [mr.sge()], e.IBV_WR_SEND_WITH_IMM, imm_data=number))
    assert [(await cq.poll())[0].check().wr_id for _ in range(count)] == list(range(count))
    await device.rendezvous("sent")


async def _receive(device: rdma.Device, receives: int, size: int) -> None:
    pd, cq = rdma.PD(device), rdma.CQ(device, receives)
    mr = rdma.MR(pd, size, LOCAL)
    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq, rdma.QPCap(1, receives)))
    for number in range(receives):
        qp.post_recv(rdma.RecvWR(number, [mr.sge()]))
    await device.listen().accept(qp)
    await device.rendezvous("sent")
    await device.sleep(100 * US)
    came = []
    while completions := cq.poll_now(16):
        came += [each.check() for each in completions]
    assert len({each.imm_data for each in came}) == len(came)
    device.report("came", len(came))


def datagrams(*, receives: int = 200, room: int = 1000, **options: Any) -> Any:
    """Run a sender and a receiver; return their result, and the run's warnings."""

    async def sender(device: rdma.Device) -> None:
        await _send(device, 200, 1000)

    async def receiver(device: rdma.Device) -> None:
        await _receive(device, receives, room)

    with made(UUD, **options) as fabric:
        result = fabric.rdma({"h0": sender, "h3": receiver})
        return result, fabric.summary().warnings


def test_datagrams_that_arrive_leave_nothing_to_say() -> None:
    result, warnings = datagrams()
    assert result.datagrams == DatagramsResult(200, 200, 0, 0, 0, 0)
    assert result.programs[1].values == {"came": 200}
    assert warnings == []
    assert {each.opcode: each.operations for each in result.operations} == {
        "IBV_WC_RECV": 200,
        "IBV_WR_SEND_WITH_IMM": 200,
    }


def test_datagrams_that_links_lose_are_counted_and_warned_of() -> None:
    result, (warning,) = datagrams(faults=FaultsSection(loss=0.1))
    found = result.datagrams
    assert found.lost > 0
    assert found.received + found.lost == found.sent == 200
    assert result.programs[1].values == {"came": found.received}
    assert f"{found.lost} lost on the way" in warning


def test_datagrams_that_receivers_drop_are_counted_and_warned_of() -> None:
    result, (warning,) = datagrams(receives=150)
    assert result.datagrams == DatagramsResult(200, 150, 50, 0, 0, 0)
    assert "50 dropped for want of a receive" in warning
    result, (warning,) = datagrams(room=999)
    assert result.datagrams == DatagramsResult(200, 0, 0, 200, 0, 0)
    assert "200 longer than the receive" in warning


def test_datagrams_of_more_than_a_packet_are_refused_at_the_post() -> None:
    with made(UUD, mtu_bytes=1024) as fabric:

        async def client(end: End) -> None:
            request = end.request(e.IBV_WR_SEND, 0, 1025, 0)
            with refused(rdma.VerbsError, valid="0 to 1024, a packet") as raised:
                end.qp.post_send(request)
            assert raised.value.errno == errno.EINVAL
            carried = "IBV_WR_SEND, IBV_WR_SEND_WITH_IMM"
            with refused(rdma.VerbsError, problem="transport.service: uud carries no WRITEs", valid=carried):
                end.qp.post_send(end.request(e.IBV_WR_RDMA_WRITE, 0, 8, 0))
            (await end.do(end.request(e.IBV_WR_SEND, 0, 1024, 0))).check()

        run_pair(fabric, client, of_server={"receives": 1})


def test_the_example_says_what_was_lost() -> None:
    result = run_scenario(load_scenario(EXAMPLE))
    [found] = result.of(RDMA)
    assert found.datagrams is not None
    assert found.datagrams.lost == found.programs[1].values["missing"] > 0
    assert any("programs have lost data" in each for each in result.warnings)


MESSAGES = "WRITEs with immediate"
RELIABLE = "service: rud, service: rod"
ITEMS: dict[str, dict[str, Any]] = {
    "collective": {"collective": "allreduce", "sizes": ["1KiB"]},
    "training_step": {"training_step": "data-parallel", "layers": [{"gradients": "1KiB"}]},
    "barrier": {"barrier": 1, "algorithms": ["ring"]},
    "permutation": {"permutation": "1KiB"},
    "remote_memory": {"remote_memory": [1]},
    "parameter_server": {"parameter_server": 1, "workers": 2, "parameters": "1KiB", "compute": "1us"},
}


@pytest.mark.parametrize(
    ("service", "kind", "words", "valid"),
    [
        ("rudi", "collective", MESSAGES, RELIABLE),
        ("rudi", "training_step", MESSAGES, RELIABLE),
        ("rudi", "barrier", MESSAGES, RELIABLE),
        ("rudi", "parameter_server", MESSAGES, RELIABLE),
        ("uud", "collective", MESSAGES, RELIABLE),
        ("uud", "permutation", "posts WRITEs, which", f"{RELIABLE}, service: rudi"),
        ("uud", "remote_memory", "posts READs, which", f"{RELIABLE}, service: rudi"),
    ],
)
def test_items_that_a_service_does_not_carry_are_refused(service: str, kind: str, words: str, valid: str) -> None:
    tree = {"clock": "virtual", "int": False, "transport": {"protocol": "uet", "service": service}}
    with pytest.raises(BadInputError) as caught:
        parse_scenario({**tree, "traffic": [ITEMS[kind]]}, "s.yaml")
    message = str(caught.value)
    assert words in message
    assert f"transport.service: {service} does not carry" in message
    assert f"(valid: {valid})" in message


def test_items_that_post_nothing_go_with_any_service() -> None:
    without = {name for name, section in TRAFFIC_KINDS.items() if not section.operations}
    assert {"ping", "tcp", "rdma", "counter", "circuits"} <= without
    tree = {"clock": "virtual", "int": False, "transport": {"protocol": "uet", "service": "uud"}}
    parse_scenario({**tree, "traffic": [{"ping": ["h0->h1"]}]}, "s.yaml")


@pytest.mark.parametrize("transport", [RUDI, UUD], ids=["rudi", "uud"])
def test_calls_that_a_service_does_not_carry_are_refused(transport: TransportSection) -> None:
    with made(transport) as fabric, refused(BadInputError, place="allreduce", valid=RELIABLE):
        fabric.run(CollectiveRequest("allreduce", [np.zeros(8, np.int32)] * 4, "ring"))
    if transport is UUD:
        valid = f"{RELIABLE}, service: rudi"
        with made(transport) as fabric, refused(BadInputError, place="permutation", valid=valid):
            fabric.permutation(1000)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"service": "rudi", "receiver_credits": True}, "receiver_credits does not go with service: rudi"),
        ({"service": "rudi", "max_pdcs": 4}, "max_pdcs does not go with service: rudi"),
        ({"service": "rudi", "ack_interval": 4}, "ack_interval does not go with service: rudi"),
        ({"service": "rudi", "retransmission": "go-back-n"}, "go-back-n does not go with service: rudi"),
        ({"service": "uud", "congestion_control": "swift"}, "congestion_control does not go with service: uud"),
        ({"service": "uud", "retransmission_timeout": 10**9}, "retransmission_timeout does not go with service: uud"),
    ],
)
def test_keys_without_meaning_for_a_service_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TransportSection(protocol="uet", **given)


@pytest.mark.parametrize("path", path_choice_names())
def test_paths_of_datagrams_cannot_learn(path: str) -> None:
    """Of all choices of path, those that ask what became of packets are refused."""
    learns = {"flowlet": False, "plb": True, "reps": True, "spray": False, "srd": True}
    if not learns[path]:
        assert TransportSection(protocol="uet", service="uud", path=path).path == path
        return
    with pytest.raises(ValueError, match=rf"path: {path} learns .+ \(valid: flow, flowlet, spray, or path/to"):
        TransportSection(protocol="uet", service="uud", path=path)


def test_the_service_says_which_paths_are_default() -> None:
    assert (RUDI.path, RUDI.retransmission) == ("reps", "selective-repeat")
    assert (UUD.path, UUD.retransmission) == ("spray", "selective-repeat")


@pytest.mark.mininet
def test_the_example_runs_in_mininet() -> None:
    result = run_scenario(load_scenario(EXAMPLE, [Change("clock", "real", "--clock")]))
    [found] = result.of(RDMA)
    assert found.datagrams is not None
    assert found.datagrams.sent == 500
    assert found.datagrams.received + found.datagrams.missing == 500


@pytest.mark.mininet
def test_flows_over_rudi_arrive_in_mininet() -> None:
    with weft.Fabric(TOPOLOGY, clock="real", seed=1, int_telemetry=False, transport=RUDI) as fabric:
        result = fabric.permutation(100_000)
        assert result.flows == 4

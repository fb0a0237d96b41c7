"""Jobs whose kinds of traffic travel in classes of their own: what is urgent goes before what is bulky."""

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.traffic.header_sizes import IMMEDIATE, RETH, largest_frame_bytes, overhead_bytes
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart
from weft.traffic.jobs.checks import problems

LINK_BPS = 100 * 10**9
DELAY_PS = 500_000
BYTE_PS = 8 * 10**12 // LINK_BPS
US = 10**6
PACKETS = 64
URGENT = {"pipeline": 5}


def two_tiers(**given):
    return topologies.leaf_spine(
        planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=LINK_BPS, delay_ps=DELAY_PS, **given
    )


def step(size_bytes=PACKETS * 1024, bulk_bytes=2 << 20, classes=None, **parts):
    """Return a job of four ranks: all of them all-reduce, and meanwhile 0 sends to 2 behind the other leaf."""
    built = []
    for rank in range(4):
        builder = OperationsBuilder()
        if bulk_bytes:
            builder.collective(0, 0, category="data")
        begins = builder.timer(40 * US)
        if rank == 0:
            builder.send(0, size_bytes, after=[begins], category="pipeline")
        if rank == 2:
            builder.receive(0, size_bytes, after=[begins], category=parts.get("received_as", "pipeline"))
        operations = builder.build()
        peers = {0: (2,), 2: (0,)}.get(rank, ())
        built.append(RankPart(operations, peers, (0,) if bulk_bytes else ()))
    calls = (CollectiveCall("allreduce", bulk_bytes, "ring"),) if bulk_bytes else ()
    return Job("step", tuple(built), (Group("all", (0, 1, 2, 3)),), calls, dict(classes or {}))


def arrival_ps(run):
    """Return how long after its start the message was there."""
    times, operations = run.times[2], run.job.parts[2].operations
    [received] = np.flatnonzero(operations.kind == 3)
    return int(times.finished_ps[received]) - 40 * US


def closed_form_ps():
    """A message alone: at each of four ports, a packet leaves when it is there and the one before has left."""
    headers = [overhead_bytes(4, int_telemetry=False)] * PACKETS
    headers[0] += RETH
    headers[-1] += IMMEDIATE
    left_ps = [0] * PACKETS
    for port in range(4):
        free_ps = 0
        for number, header in enumerate(headers):
            arrived_ps = left_ps[number] + (DELAY_PS if port else 0)
            free_ps = max(arrived_ps, free_ps) + (1024 + header) * BYTE_PS
            left_ps[number] = free_ps
    return left_ps[-1] + DELAY_PS


@pytest.fixture(scope="module")
def fabric():
    with Fabric(two_tiers(), clock="virtual", int_telemetry=False, scheduling={"classes": [4, 5]}) as running:
        yield running


def test_an_urgent_message_beside_bulk_takes_its_closed_form_and_a_packet_at_each_hop(fabric):
    alone = arrival_ps(fabric.run_job(step(bulk_bytes=0, classes=URGENT)))
    assert alone == closed_form_ps()
    beside = arrival_ps(fabric.run_job(step(classes=URGENT)))
    a_packet_ps = largest_frame_bytes(4, 1024) * BYTE_PS
    assert alone <= beside <= alone + 4 * a_packet_ps
    in_one_class = arrival_ps(fabric.run_job(step()))
    assert in_one_class > 1.5 * alone


def test_without_classes_results_are_the_same_on_switches_that_would_keep_some_apart(fabric):
    with Fabric(two_tiers(), clock="virtual", int_telemetry=False) as plain:
        ours, theirs = plain.run_job(step()), fabric.run_job(step())
    for one, two in zip(ours.times, theirs.times, strict=True):
        assert np.array_equal(one.finished_ps, two.finished_ps)


@pytest.mark.parametrize("names", [{"data": 4}, {"all": 4}, {"allreduce": 4}, {"data": 4, "pipeline": 5}])
def test_a_class_is_of_a_category_a_group_or_a_collective(fabric, names):
    fabric.hosts.reset_stats()
    assert fabric.run_job(step(classes=names), data="random").verdict.ok
    transmitted = [plane["transmit"]["classes"] for host in fabric.hosts.stats() for plane in host["planes"]]
    used = {each for classes in transmitted for each in range(8) if classes[each]["transmitted"]["packets"]}
    assert used == {6, *names.values()} | ({3} if "pipeline" not in names else set())


def test_weighted_classes_share_a_link_by_their_quanta():
    quanta = {3: "2KiB", 4: "6KiB"}
    with Fabric(two_tiers(), clock="virtual", scheduling={"classes": [4], "quantum": quanta}) as shared:
        builders = [OperationsBuilder() for _ in range(2)]
        for number, builder in enumerate(builders):
            for category in ("light", "heavy"):
                add = builder.receive if number else builder.send
                add(0, 1 << 20, 1 if category == "heavy" else 0, category=category)
        parts = [RankPart(builder.build(), (1 - rank,)) for rank, builder in enumerate(builders)]
        run = shared.run_job(Job("two", tuple(parts), traffic_classes={"heavy": 4}))
    light, heavy = run.times[1].finished_ps.tolist()
    # While both send, three quarters of the link are the heavy one's.
    assert heavy / light == pytest.approx(2 / 3, rel=0.02)


def test_both_ends_must_agree_on_a_class(fabric):
    with refused(BadInputError, problem="sent in traffic class 5"):
        fabric.run_job(step(classes=URGENT, received_as="other"))


@pytest.mark.parametrize(
    ("classes", "what"),
    [
        (
            {"pipeline": 2},
            {"problem": "class 2 of 'pipeline' (valid on"},
        ),
        ({"pipelin": 5}, {"valid": "all, allreduce, data, messages, pipeline", "problem": "pipelin"}),
        (
            {"forward": 5},
            {"valid": "all, allreduce, data, messages, pipeline", "problem": "forward"},
        ),
    ],
)
def test_classes_and_names_that_are_not_there_are_refused(fabric, classes, what):
    with refused(BadInputError, **what):
        fabric.run_job(step(classes=classes))


@pytest.mark.parametrize("number", [-1, 6, 10**30])
def test_a_job_with_a_class_that_no_data_travels_in_is_no_job(number):
    assert list(problems(step(classes={"pipeline": number}))) == [
        f"traffic class {number} of 'pipeline' (valid: 0 to 5)"
    ]


@pytest.mark.mininet
def test_classes_travel_apart_between_processes():
    """Every port on the way has the frames of each class; DSCP says which across the interfaces."""
    classes = {"pipeline": 5, "data": 4}
    with Fabric(two_tiers(), clock="real", scheduling={"classes": [4, 5]}) as fabric:
        run = fabric.run_job(step(64 << 10, 128 << 10, classes), data="random", timeout_s=60)
        switches = fabric.lab.switch_stats()["switches"]
    assert run.verdict.ok
    used = {
        f"{name}:{number}": {
            each for each, counted in enumerate(port["transmit"]["classes"]) if counted["transmitted"]["packets"]
        }
        for name, switch in switches.items()
        for number, port in switch["ports"].items()
    }
    assert all({4, 6} <= found for found in used.values())
    assert {name for name, found in used.items() if 5 in found} >= {"p0l0:3", "p0s0:2"}
    assert not any(3 in found for found in used.values())

"""Operations repeated without packets: how far results are from those of packets, and what they do not go with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.refusals import refused
from tests.weft.small_model import SMALL_MODEL
from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.results.fast_forward import FastForwardResult
from weft.results.run_result import RunResult
from weft.run.jobs import JobRun, PlacedJob
from weft.run.runner import run_scenario
from weft.scenario import FidelitySection, RoutingSection, TransportSection, parse_scenario
from weft.topologies import FabricSpec
from weft.topologies.scale_up import with_scale_up
from weft.topologies.spares import with_spares
from weft.traffic.jobs import CollectiveCall, Group, Job, Operations, OperationsBuilder, RankPart
from weft.traffic.jobs.operations import Kind

US = 10**6
MEBIBYTE = 1 << 20
TOLERANCE = 0.01
MOST_OF_RUN, MOST_OF_OPERATION = 0.01, 0.03


def fabric_of(hosts_per_leaf: int = 4, leaves: int = 2, oversubscription: float = 1.0) -> FabricSpec:
    return topologies.leaf_spine(
        planes=1,
        leaves=leaves,
        spines=4,
        hosts_per_leaf=hosts_per_leaf,
        host_rate_bps=100e9,
        oversubscription=oversubscription,
    )


@dataclass(frozen=True)
class Outcome:
    runs: list[JobRun]
    totals: dict[str, int]
    fast_forward: list[FastForwardResult]

    def counted(self) -> FastForwardResult:
        (found,) = self.fast_forward
        return found


def run(fabric: FabricSpec, *jobs: PlacedJob, fast_forward: float | None = None, **options: Any) -> Outcome:
    with Fabric(
        fabric,
        clock="virtual",
        mtu_bytes=4096,
        int_telemetry=False,
        fidelity=FidelitySection(fast_forward=fast_forward),
        **options,
    ) as running:
        runs = list(running.run_jobs(jobs))
        totals = {
            name: sum(host["totals"].get(name, 0) for host in running.hosts.stats())
            for name in running.hosts.stats()[0]["totals"]
        }
        return Outcome(runs, totals, running.summary().fast_forward)


def both(fabric: FabricSpec, *jobs: PlacedJob, **options: Any) -> tuple[Outcome, Outcome]:
    return run(fabric, *jobs, **options), run(fabric, *jobs, fast_forward=TOLERANCE, **options)


def worst_operation(packets: JobRun, repeated: JobRun) -> float:
    """Return the largest error of an operation's duration, over all collectives and sends."""
    worst = 0.0
    for part, with_packets, without in zip(packets.job.parts, packets.times, repeated.times, strict=True):
        operations = part.operations
        rows = np.concatenate([operations.of_kind(Kind.COLLECTIVE), operations.of_kind(Kind.SEND)])
        took_ps = (with_packets.finished_ps - with_packets.started_ps)[rows]
        off_ps = (without.finished_ps - without.started_ps)[rows] - took_ps
        worst = max(worst, float(np.max(np.abs(off_ps) / np.maximum(took_ps, 1), initial=0.0)))
    return worst


def error_of_run(packets: JobRun, repeated: JobRun) -> float:
    return abs(repeated.duration_ps / packets.duration_ps - 1)


def sends(count: int, size_bytes: int, gap_ps: int = 20 * US) -> tuple[Operations, Operations]:
    """Return operations of a sender and a receiver of messages, one after the other, with gaps."""
    sender, receiver = OperationsBuilder(), OperationsBuilder()
    before: list[int] = []
    for tag in range(count):
        sent = sender.send(0, size_bytes, tag=tag, after=before)
        before = [sender.compute(gap_ps, after=[sent])]
        receiver.receive(0, size_bytes, tag=tag)
    return sender.build(), receiver.build()


def pair_job(count: int, size_bytes: int) -> Job:
    sender, receiver = sends(count, size_bytes)
    return Job("pair", parts=(RankPart(sender, peers=(1,)), RankPart(receiver, peers=(0,))))


def collective_job(
    calls: int, ranks: int, size_bytes: int, collective: str = "allreduce", gap_ps: int = 50 * US, name: str = "job"
) -> Job:
    builder = OperationsBuilder()
    before: list[int] = []
    for _ in range(calls):
        computed = builder.compute(gap_ps, after=before)
        before = [builder.collective(0, 0, after=[computed], category="data")]
    part = RankPart(builder.build(), groups=(0,))
    return Job(
        name,
        parts=(part,) * ranks,
        groups=(Group("all", tuple(range(ranks))),),
        calls=(CollectiveCall(collective, size_bytes),),
    )


def test_messages_that_repeat_end_when_packets_do_and_count_the_same() -> None:
    packets, repeated = both(fabric_of(), PlacedJob(pair_job(16, MEBIBYTE)))
    # Three messages show that it takes as long each time; one with packets follows 4 repetitions, and one 8.
    assert repeated.counted().repeated == 11
    assert repeated.counted().compared == 4
    assert repeated.counted().largest_deviation == 0
    for with_packets, without in zip(packets.runs[0].times, repeated.runs[0].times, strict=True):
        assert without.started_ps.tolist() == with_packets.started_ps.tolist()
        assert without.finished_ps.tolist() == with_packets.finished_ps.tolist()
    assert repeated.totals == packets.totals


@pytest.mark.parametrize("collective", ["allreduce", "reducescatter", "allgather", "alltoall"])
@pytest.mark.parametrize("congestion_control", ["fixed-window", "dcqcn", "swift"])
def test_collectives_that_repeat_take_as_long(collective: str, congestion_control: str) -> None:
    transport = TransportSection(congestion_control=congestion_control)
    job = PlacedJob(collective_job(12, 4, 4 * MEBIBYTE, collective))
    packets, repeated = both(fabric_of(), job, transport=transport)
    assert error_of_run(packets.runs[0], repeated.runs[0]) <= MOST_OF_RUN
    assert worst_operation(packets.runs[0], repeated.runs[0]) <= MOST_OF_OPERATION
    if congestion_control == "fixed-window":
        assert repeated.counted().repeated >= 6
        assert repeated.totals["data_bytes_sent"] == packets.totals["data_bytes_sent"]


def test_collectives_within_hosts_repeat_exactly() -> None:
    fabric = with_scale_up(fabric_of(leaves=4), 4, 1.6e12, rail_optimised=True)
    packets, repeated = both(fabric, PlacedJob(collective_job(20, 4, MEBIBYTE)))
    assert repeated.counted().repeated >= 14
    for with_packets, without in zip(packets.runs[0].times, repeated.runs[0].times, strict=True):
        assert without.finished_ps.tolist() == with_packets.finished_ps.tolist()


def test_what_meets_another_operation_at_a_port_goes_on_with_packets() -> None:
    """Two senders to one receiver, at other distances in time each round: each message meets the other's."""
    first, to_first = sends(16, MEBIBYTE, gap_ps=100 * US)
    second, to_second = sends(16, MEBIBYTE, gap_ps=131 * US)
    receiver = OperationsBuilder()
    for slot in range(2):
        for tag in range(16):
            receiver.receive(slot, MEBIBYTE, tag=tag)
    del to_first, to_second
    job = Job(
        "incast",
        parts=(
            RankPart(first, peers=(2,)),
            RankPart(second, peers=(2,)),
            RankPart(receiver.build(), peers=(0, 1)),
        ),
    )
    packets, repeated = both(fabric_of(), PlacedJob(job))
    counted = repeated.counted()
    assert counted.resumed > 0
    assert counted.disturbed > 0
    assert error_of_run(packets.runs[0], repeated.runs[0]) <= MOST_OF_RUN
    assert worst_operation(packets.runs[0], repeated.runs[0]) <= MOST_OF_OPERATION


def permutation_between_leaves(count: int) -> Job:
    """Return a job in which each rank of a leaf sends to one of the other leaf, all at the same times."""
    sender, receiver = OperationsBuilder(), OperationsBuilder()
    for tag in range(count):
        sender.send(0, MEBIBYTE, tag=tag, after=[sender.timer(tag * 500 * US)])
        receiver.receive(0, MEBIBYTE, tag=tag)
    sent, received = sender.build(), receiver.build()
    return Job(
        "permutation",
        parts=(
            *(RankPart(sent, peers=(4 + rank,)) for rank in range(4)),
            *(RankPart(received, peers=(rank,)) for rank in range(4)),
        ),
    )


def test_messages_that_always_meet_at_a_link_are_not_repeated() -> None:
    """Two of the four have a link to themselves, and two share one, which takes twice as long."""
    packets, repeated = both(fabric_of(), PlacedJob(permutation_between_leaves(16)))
    alone, together = [], []
    for with_packets, without in zip(packets.runs[0].times[:4], repeated.runs[0].times[:4], strict=True):
        sent = packets.runs[0].job.parts[0].operations.of_kind(Kind.SEND)
        took_ps = (with_packets.finished_ps - with_packets.started_ps)[sent]
        (alone if took_ps.max() < 100 * US else together).append((with_packets, without))
    assert len(alone) == len(together) == 2
    for with_packets, without in alone:
        assert without.finished_ps.tolist() == with_packets.finished_ps.tolist()
    # Both have been alone in what was found out of the others' messages: once they meet, and no more.
    assert repeated.counted().resumed == len(together)
    assert repeated.counted().repeated <= len(alone) * 16
    assert error_of_run(packets.runs[0], repeated.runs[0]) <= MOST_OF_RUN
    assert worst_operation(packets.runs[0], repeated.runs[0]) <= MOST_OF_OPERATION


def test_messages_repeat_on_a_link_that_carries_all_of_them() -> None:
    """Links between switches have four times the rate of the hosts'."""
    packets, repeated = both(fabric_of(oversubscription=0.25), PlacedJob(permutation_between_leaves(16)))
    assert repeated.counted().resumed == repeated.counted().disturbed == 0
    assert repeated.counted().repeated > 4 * 16 / 2
    assert worst_operation(packets.runs[0], repeated.runs[0]) <= 0.002


@pytest.mark.parametrize(
    "options",
    [
        {"routing": RoutingSection(load_balancing="flowlet")},
        {"transport": TransportSection(path="flowlet")},
    ],
)
def test_messages_that_choose_their_paths_share_all_links_of_a_leaf(options: dict[str, Any]) -> None:
    packets, repeated = both(fabric_of(oversubscription=0.25), PlacedJob(permutation_between_leaves(8)), **options)
    assert repeated.counted().repeated == 0
    assert repeated.counted().disturbed == 4 * 8
    assert repeated.runs[0].duration_ps == packets.runs[0].duration_ps


def overlapping_job(rounds: int, ranks: int, size_bytes: int) -> Job:
    """Return a job in which a collective runs alone, and then with another one of the same group, over and over."""
    builder = OperationsBuilder()
    before: list[int] = []
    for _ in range(rounds):
        alone = builder.collective(0, 0, after=before, category="weights")
        computed = builder.compute(20 * US, after=[alone])
        again = builder.collective(0, 0, after=[computed], category="weights")
        beside = builder.collective(0, 1, after=[computed], category="gradients")
        before = [again, beside]
    part = RankPart(builder.build(), groups=(0,))
    calls = (CollectiveCall("allgather", size_bytes), CollectiveCall("reducescatter", size_bytes))
    return Job("sharded", parts=(part,) * ranks, groups=(Group("all", tuple(range(ranks))),), calls=calls)


@pytest.mark.parametrize("ranks", [(0, 1, 2, 3), (0, 1, 4, 5)])
def test_collectives_that_sometimes_overlap_take_as_long_as_with_packets(ranks: tuple[int, ...]) -> None:
    packets, repeated = both(fabric_of(), PlacedJob(overlapping_job(10, 4, 4 * MEBIBYTE), ranks=ranks))
    assert repeated.counted().disturbed + repeated.counted().resumed > 0
    assert error_of_run(packets.runs[0], repeated.runs[0]) <= MOST_OF_RUN
    # Of two that begin together either may be the first to end.
    took_ps = [
        np.sort((each.runs[0].times[0].finished_ps - each.runs[0].times[0].started_ps).reshape(10, 4), axis=1)
        for each in (packets, repeated)
    ]
    assert np.allclose(*took_ps, rtol=MOST_OF_OPERATION)


def test_an_incast_in_step_is_not_repeated() -> None:
    sender, _ = sends(8, MEBIBYTE)
    receiver = OperationsBuilder()
    for slot in range(3):
        for tag in range(8):
            receiver.receive(slot, MEBIBYTE, tag=tag)
    job = Job("incast", parts=(*(RankPart(sender, peers=(3,)),) * 3, RankPart(receiver.build(), peers=(0, 1, 2))))
    packets, repeated = both(fabric_of(), PlacedJob(job))
    assert repeated.counted().repeated == 0
    assert repeated.counted().largest_deviation is None
    assert repeated.runs[0].duration_ps == packets.runs[0].duration_ps


def test_two_jobs_take_as_long_as_with_packets() -> None:
    jobs = (
        PlacedJob(collective_job(12, 4, 4 * MEBIBYTE, name="a"), ranks=(0, 1, 4, 5)),
        PlacedJob(collective_job(12, 4, 2 * MEBIBYTE, gap_ps=70 * US, name="b"), ranks=(2, 3, 6, 7)),
    )
    packets, repeated = both(fabric_of(), *jobs)
    for with_packets, without in zip(packets.runs, repeated.runs, strict=True):
        assert error_of_run(with_packets, without) <= MOST_OF_RUN
        assert worst_operation(with_packets, without) <= MOST_OF_OPERATION


def test_results_depend_on_no_number_of_workers() -> None:
    jobs = (
        PlacedJob(collective_job(12, 4, 4 * MEBIBYTE, name="a"), ranks=(0, 1, 2, 3)),
        PlacedJob(pair_job(16, MEBIBYTE), ranks=(4, 5)),
    )
    one, three = (run(fabric_of(), *jobs, fast_forward=TOLERANCE, workers=workers) for workers in (1, 3))
    assert one.fast_forward == three.fast_forward
    assert one.totals == three.totals
    for left, right in zip(one.runs, three.runs, strict=True):
        for a, b in zip(left.times, right.times, strict=True):
            assert a.finished_ps.tolist() == b.finished_ps.tolist()


def test_a_second_run_is_like_the_first() -> None:
    job = pair_job(10, MEBIBYTE)
    with Fabric(fabric_of(), clock="virtual", fidelity=FidelitySection(fast_forward=TOLERANCE)) as fabric:
        first, second = (fabric.run_job(job) for _ in range(2))
        assert fabric.summary().fast_forward[0].operations == 20
    assert first.duration_ps == second.duration_ps


def test_nothing_is_repeated_once_a_spare_has_a_rank() -> None:
    spec = with_spares(fabric_of(), 1)
    with Fabric(spec, clock="virtual", fidelity=FidelitySection(fast_forward=TOLERANCE)) as fabric:
        fabric.hosts.exchange_ranks(0, spec.rank_count)
        fabric.run_job(pair_job(10, MEBIBYTE))
        (counted,) = fabric.summary().fast_forward
    assert counted.operations == 0
    assert any("spare" in line for line in counted.sentences)


SCENARIO: dict[str, Any] = {
    "clock": "virtual",
    "mtu": 4096,
    "int": False,
    "fabric": {
        "planes": 1,
        "leaves": 2,
        "spines": 4,
        "hosts_per_leaf": 16,
        "host_rate": "400Gb/s",
        "oversubscription": 1.0,
    },
    "traffic": [
        {
            "model": SMALL_MODEL | {"layers": 4},
            "parallel": {"data": 8, "pipeline": 2},
            "micro_batches": 8,
        }
    ],
}


def run_with(fast_forward: str | None, **more: Any) -> RunResult:
    fidelity = {"fidelity": {"fast_forward": fast_forward}} if fast_forward else {}
    return run_scenario(parse_scenario({**SCENARIO, **fidelity, **more}))


def test_a_training_step_takes_as_long() -> None:
    packets, repeated = run_with(None), run_with("1%")
    (counted,) = repeated.fast_forward
    assert not packets.fast_forward
    assert counted.repeated > counted.operations / 4
    step_ps, repeated_ps = (each.phases[-1].end_ps - each.phases[-1].start_ps for each in (packets, repeated))
    assert abs(repeated_ps / step_ps - 1) <= MOST_OF_RUN
    assert "repeated" in counted.sentences[0]
    assert repeated.as_dict()["fast_forward"][0]["repeated"] == counted.repeated
    assert "fast_forward" not in packets.as_dict()


def test_a_run_with_other_traffic_says_that_nothing_was_repeated() -> None:
    result = run_with("1%", traffic=[{"permutation": "1MiB"}])
    (counted,) = result.fast_forward
    assert counted.operations == 0
    assert any("which is no job" in line for line in counted.sentences)


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"observe": {"flows": True}}, "observe.flows"),
        ({"observe": {"int": "all"}, "int": True}, "observe.int"),
        ({"faults": {"loss": 0.001}}, "faults"),
        ({"pfc": {"classes": [3]}}, "pfc"),
        ({"events": [{"at": "1ms", "link": "p0l0-p0s0", "state": "down"}]}, "events"),
        ({"clock": "real"}, "clock: real"),
    ],
)
def test_refuses_what_shows_or_changes_packets(more: dict[str, Any], key: str) -> None:
    with refused(
        BadInputError, place="scenario: fidelity.fast_forward", valid="leave fidelity.fast_forward out", problem=key
    ):
        run_with("1%", **more)


@pytest.mark.parametrize("value", ["0%", "20%", "much", -1])
def test_refuses_a_tolerance_out_of_range(value: object) -> None:
    with pytest.raises(BadInputError, match="fast_forward"):
        parse_scenario({**SCENARIO, "fidelity": {"fast_forward": value}})

"""Planes that are lost while a collective runs: it goes on over the others, with right results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.engine import Engine, _core
from weft.results.collectives import CollectiveResult
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import ControlSection, EventSection, TransportSection, parse_scenario

US = 10**6
SPRAYED = TransportSection(retransmission="selective-repeat", path="spray", congestion_control="swift")


def run(
    events: list[EventSection],
    collective: str = "allreduce",
    algorithm: str = "ring",
    planes: int = 3,
    size_bytes: int = 1 << 18,
    runs: int = 1,
    transport: TransportSection | None = None,
) -> tuple[list[CollectiveResult], RunResult]:
    """Run a collective of integers on four hosts so often."""
    topology = topologies.leaf_spine(planes=planes, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10e9)
    generator = np.random.default_rng(3)
    inputs = [generator.integers(-1000, 1000, size_bytes // 4).astype(np.int32) for _ in topology.hosts]
    with Fabric(
        topology,
        clock="virtual",
        events=events,
        control=ControlSection(latency=2 * US, detection=US),
        transport=transport or TransportSection(),
    ) as fabric:
        results = [fabric.run(CollectiveRequest(collective, inputs, algorithm)).result for _ in range(runs)]
        return results, fabric.summary()


def plane(state: str, at_us: int | None, number: int = 1) -> EventSection:
    return EventSection(plane=number, state=state, at=None if at_us is None else at_us * US)


def kinds(result: RunResult) -> list[str]:
    return [f"{event.kind} {event.element}" for event in result.controller_events if "plane" in event.kind]


@pytest.fixture(scope="module")
def began_us() -> int:
    """When the first run of such a fabric begins."""
    _, result = run([])
    return result.phases[0].start_ps // US


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("allreduce", "ring"),
        ("allreduce", "tree"),
        ("allreduce", "halving-doubling"),
        ("alltoall", "direct"),
        ("alltoallv", "direct"),
        ("broadcast", "ring"),
        ("moe_dispatch", "direct"),
    ],
)
def test_a_collective_goes_on_over_the_other_planes(began_us: int, collective: str, algorithm: str) -> None:
    (whole,), _ = run([], collective, algorithm)
    at_us = began_us + whole.time_ps // US // 3
    (found, after), result = run([plane("down", at_us)], collective, algorithm, runs=2)
    assert found.ok
    assert after.ok
    assert kinds(result) == ["plane lost plane 1"]
    assert set(result.drops) <= {"link cut", "queue down", "nic unknown_queue_pair"}
    assert whole.time_ps < found.time_ps < 2 * whole.time_ps
    if algorithm == "ring":
        assert after.time_ps == pytest.approx(whole.time_ps * 3 / 2, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("transport", [TransportSection(), SPRAYED], ids=["go-back-n", "sprayed"])
def test_it_does_not_matter_when_a_plane_is_lost(began_us: int, transport: TransportSection) -> None:
    for after_us in range(2, 120, 9):
        (found,), _ = run([plane("down", began_us + after_us)], size_bytes=1 << 16, transport=transport)
        assert found.ok, after_us


def test_a_plane_that_is_back_is_used_again(began_us: int) -> None:
    (whole,), _ = run([])
    for back_after_us in (5, 30, 90):
        lost_us = began_us + 30
        events = [plane("down", lost_us), plane("up", lost_us + back_after_us)]
        (found, after), result = run(events, runs=2)
        assert found.ok
        assert after.ok
        assert kinds(result) == ["plane lost plane 1", "plane found plane 1"]
        assert after.time_ps == whole.time_ps


def test_stand_ins_are_moved_when_their_plane_is_lost_too(began_us: int) -> None:
    events = [plane("down", began_us + 30), plane("down", began_us + 60, 2), plane("up", began_us + 90)]
    (found, after), result = run(events, planes=4, runs=2)
    assert found.ok
    assert after.ok
    assert kinds(result) == ["plane lost plane 1", "plane lost plane 2", "plane found plane 1"]


def test_a_host_without_its_link_loses_all_hosts_the_plane(began_us: int) -> None:
    at = (began_us + 30) * US
    (found,), result = run([EventSection(link="h2<->p1l1", state="down", at=at)])
    assert found.ok
    assert kinds(result) == ["plane lost plane 1"]


def test_a_link_that_nobody_needs_loses_no_plane() -> None:
    fabric = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    result = run_scenario(
        parse_scenario(
            {
                "clock": "virtual",
                "fabric": fabric,
                "traffic": [{"collective": "allreduce", "algorithms": ["ring"]}],
                "events": [{"link": "p0l0<->p0s0", "state": "down", "at": "10us"}],
            }
        )
    )
    assert result.collectives[0].ok
    assert kinds(result) == []


def test_the_last_plane_is_never_given_up(began_us: int) -> None:
    """It comes back before the connections give up, and everything arrives over it."""
    events = [plane("down", began_us + 20, 0), plane("up", began_us + 60, 0)]
    (found,), _ = run(events, planes=1)
    assert found.ok
    assert found.retransmissions > 0


def test_flows_move_too(began_us: int) -> None:
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10e9)
    with Fabric(
        topology,
        clock="virtual",
        events=[plane("down", began_us + 40)],
        control=ControlSection(latency=2 * US, detection=US),
    ) as fabric:
        flows = fabric.permutation(1 << 18)
    assert flows.bytes_delivered == 4 * 2 * (1 << 18)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"plane": 2, "state": "down"}, {"place": "scenario: events[0].plane", "valid": "0 to 1"}),
        (
            {"plane": 0, "state": "flapping", "count": 1, "period": "2us"},
            {"place": "scenario: events[0]", "valid": "down, up, cordoned, drained, restored"},
        ),
        (
            {"switch": "p0s0", "state": "down"},
            {"place": "scenario: events[0]", "valid": "cordoned, drained, restored"},
        ),
    ],
)
def test_what_cannot_happen_is_refused(event: dict[str, object], words: dict[str, str]) -> None:
    with refused(BadInputError, **words):
        run_scenario(
            parse_scenario(
                {
                    "clock": "virtual",
                    "fabric": {"planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 1},
                    "traffic": [{"permutation": "4KiB"}],
                    "events": [event],
                }
            )
        )


def test_the_executor_refuses_channels_that_it_cannot_move() -> None:
    executor = _core.ScheduleExecutor(Engine(seed=1))
    with pytest.raises(ValueError, match="channel 0 has no queue pair to suspend"):
        executor.suspend(0)
    with pytest.raises(ValueError, match="channel 0 is not suspended"):
        executor.detour(0, [1], 0)


def test_a_plane_that_flaps_takes_no_time_from_the_timeout() -> None:
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=1, host_rate_bps=10e9)
    events = [plane("up" if number % 2 else "down", 20 + 100 * number) for number in range(8)]
    inputs = [np.arange(1 << 18, dtype=np.int32) for _ in topology.hosts]
    with Fabric(topology, clock="virtual", events=events, control=ControlSection(detection=US)) as fabric:
        # Of the timeout's two rounds of two seconds each, eight that are interrupted take less than a millisecond.
        assert fabric.run(CollectiveRequest("allreduce", inputs, "ring"), timeout_s=2.0).result.ok
        assert kinds(fabric.summary()).count("plane found plane 1") > 2

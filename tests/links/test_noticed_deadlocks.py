"""A deadlock of flow control is noticed, and its full buffers are named in the order in which they wait."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.links.ring_routing import ring, route_clockwise
from tests.refusals import refused
from tests.weft.process_threads import in_processes
from weft import Fabric
from weft.clocks.virtual.deadlocks import HeldQueue, cycle_of, stuck_queues
from weft.clocks.virtual.processes import ALONE, Processes
from weft.errors import CheckFailedError, DeadlockError
from weft.scenario import CreditsSection, PfcSection
from weft.traffic.patterns import Flow

QUEUES = [HeldQueue(f"p0n{number}", 1, 3) for number in range(5)]
some = st.frozensets(st.sampled_from(QUEUES), max_size=3)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(QUEUES), some))
def test_what_is_stuck_is_the_largest_set_that_waits_only_for_itself(
    waits_for: dict[HeldQueue, frozenset[HeldQueue]],
) -> None:
    closed = [
        set(chosen)
        for count in range(len(waits_for) + 1)
        for chosen in itertools.combinations(waits_for, count)
        if all(waits_for[queue] and waits_for[queue] <= set(chosen) for queue in chosen)
    ]
    stuck = stuck_queues(waits_for)
    assert stuck.keys() == max(closed, key=len)
    cycle = cycle_of(stuck)
    assert bool(cycle) == bool(stuck)
    assert all(after in waits_for[queue] for queue, after in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True))


ALLOWED: dict[str, Any] = {
    "pfc": {"pfc": PfcSection(classes=[3], xoff=3000, hysteresis=1000, allow_deadlock=True)},
    "credits": {"credits": CreditsSection(classes=[3], buffer=2560, allow_deadlock=True)},
}


@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_ring_of_four_without_a_second_lane_deadlocks(
    name: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every host sends half round; then each switch's buffer waits for the next one's."""
    route_clockwise(monkeypatch)
    with Fabric(ring(4), clock="virtual", workers=workers, **ALLOWED[name]) as fabric:
        flows = [Flow(source, (source + 2) % 4, 200_000) for source in range(4)]
        with refused(DeadlockError, problem="the fabric is deadlocked: full") as caught:
            fabric.run_flows("across", flows)
        noticed_ps = fabric.hosts.now_ps()
    hops = caught.value.cycle.split(" → ")
    switches = [re.fullmatch(r"(p0n\d):\d \(class 3\)", hop) for hop in hops]
    names = [match.group(1) for match in switches if match]
    assert names in [[f"p0n{(first + each) % 4}" for each in range(5)] for first in range(4)]
    assert hops[0] == hops[-1]
    # Not after the timeouts of the queue pairs, nor after the run's of 300 s.
    assert noticed_ps < 10**10
    assert isinstance(caught.value, CheckFailedError)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("name", ALLOWED)
def test_congestion_alone_is_no_deadlock(name: str) -> None:
    """An incast that fills the buffers of all switches, on routes without a cycle."""
    with Fabric(ring(3), clock="virtual", **ALLOWED[name]) as fabric:
        result = fabric.run_flows("incast", [Flow(source, 0, 400_000) for source in (1, 2) for _ in range(3)])
    assert result.bytes_delivered == 2_400_000


@pytest.mark.parametrize("name", ALLOWED)
def test_several_processes_notice_the_deadlock_that_one_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    route_clockwise(monkeypatch)

    def cycle(processes: Processes) -> tuple[str, int]:
        with Fabric(ring(4), clock="virtual", processes=processes, **ALLOWED[name]) as fabric:
            flows = [Flow(source, (source + 2) % 4, 200_000) for source in range(4)]
            with pytest.raises(DeadlockError) as caught:
                fabric.run_flows("across", flows)
            return caught.value.cycle, fabric.hosts.now_ps()

    assert in_processes(2, cycle) == [cycle(ALONE)] * 2

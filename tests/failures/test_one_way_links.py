"""Links that fail, or are slow, in one direction: neither end notices."""

from typing import Any

import pytest

from tests.refusals import refused
from weft.errors import BadInputError, EnvironmentLacksError
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

FABRIC = {"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "10Gb/s", "fabric_rate": "10Gb/s"}
ONE_SPINE = {"leaves": 2, "spines": 1, "hosts_per_leaf": 1, "host_rate": "10Gb/s", "fabric_rate": "10Gb/s"}
DIRECTION = "p0l0->p0s1"
BACK = "p0s1->p0l0"


def run(*events: dict[str, Any], **keys: Any) -> RunResult:
    scenario = {
        "clock": "virtual",
        "fabric": FABRIC,
        "traffic": [{"permutation": "1MiB"}],
        "transport": {"retransmission": "selective-repeat", "path": "spray"},
        "events": list(events),
    }
    return run_scenario(parse_scenario(scenario | keys))


def lost(result: RunResult) -> dict[str, int]:
    return {each.link: each.lost_packets for each in result.link_faults}


def test_a_direction_that_fails_loses_all_packets_and_nobody_notices() -> None:
    result = run({"link": DIRECTION, "state": "down", "at": "100us"}, {"link": DIRECTION, "state": "up", "at": "300us"})
    assert result.ok
    down, up = result.link_events
    assert (down.link, down.state, down.happened_ps) == (DIRECTION, "down", 100_000_000)
    assert (up.link, up.state, up.happened_ps) == (DIRECTION, "up", 300_000_000)
    assert {down.detected_ps, down.reprogrammed_ps, up.detected_ps, up.reprogrammed_ps} == {None}
    assert result.controller_events == []
    # Only this direction loses packets, and hosts send them again.
    assert lost(result).keys() == {DIRECTION}
    assert down.last_recovery_ps is not None
    whole = run({"link": "p0l0<->p0s1", "state": "down", "at": "100us"})
    assert whole.link_events[0].reprogrammed_ps is not None
    assert whole.link_faults == []


def test_a_direction_down_from_the_start_carries_nothing() -> None:
    result = run(
        {"link": DIRECTION, "state": "down"},
        controller={"link_watch": {"loss": 0.5, "least_packets": 10}, "interval": "50us"},
    )
    assert result.ok
    assert [event.kind for event in result.controller_events] == ["lossy", "cordoned", "programmed"]
    assert result.controller_events[0].element == "p0l0<->p0s1"
    assert lost(result).keys() == {DIRECTION}
    (event,) = result.link_events
    assert event.in_flight is not None
    assert event.in_flight.packets == 0


def test_a_direction_gets_its_own_faults_back() -> None:
    lossy = {"links": [{"link": DIRECTION, "loss": 0.01}]}
    times = {"count": 2, "period": "40us", "at": "50us"}
    result = run({"link": DIRECTION, "state": "flapping", **times}, faults=lossy)
    alone = run(faults=lossy)
    assert result.ok
    assert [each.state for each in result.link_events] == ["down", "up"] * 2
    assert lost(result)[DIRECTION] > lost(alone)[DIRECTION] > 0


def test_a_slow_direction_leaves_the_other_one_its_rate() -> None:
    def largest_ps(receiver: str, *events: dict[str, Any]) -> int:
        found = run(*events, traffic=[{"incast": receiver, "bytes_per_sender": "1MiB"}], fabric=ONE_SPINE)
        (flows,) = found.traffic["flows"]
        return int(flows.largest_completion_ps)

    slow = {"link": "p0l0->p0s0", "state": "slow", "rate": "2Gb/s"}
    assert largest_ps("h1", slow) > 4 * largest_ps("h1")
    # Only acknowledgements go the slow way.
    assert largest_ps("h0", slow) < 1.1 * largest_ps("h0")


def test_both_directions_apart_and_together() -> None:
    result = run(
        {"link": DIRECTION, "state": "down", "at": "50us"},
        {"link": BACK, "state": "down", "at": "60us"},
        {"link": "p0l0<->p0s1", "state": "down", "at": "100us"},
    )
    assert result.ok
    assert [each.link for each in result.link_events] == [DIRECTION, BACK, "p0l0<->p0s1"]


def test_all_directions_that_a_pattern_names() -> None:
    result = run(
        {"link": "p0l*->p0s1", "state": "down", "at": "50us"}, {"link": "p0l*->p0s1", "state": "up", "at": "90us"}
    )
    assert {each.link for each in result.link_events} == {"p0l0->p0s1", "p0l1->p0s1"}
    assert lost(result).keys() <= {"p0l0->p0s1", "p0l1->p0s1"}


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            [{"link": DIRECTION, "state": "drained"}],
            {"place": "scenario: events[0]", "valid": "NODE<->NODE"},
        ),
        (
            [{"link": DIRECTION, "state": "up", "at": "1us"}],
            {"place": "scenario: events[0].state", "problem": "p0l0->p0s1 is up already"},
        ),
        (
            [{"link": "p0l0<->p0s1", "state": "down", "at": "1us"}, {"link": DIRECTION, "state": "down", "at": "1us"}],
            {"place": "scenario: events[1].at", "problem": "p0l0->p0s1 has another event at that time"},
        ),
    ],
)
def test_events_that_cannot_be_are_refused(events: list[dict[str, Any]], message: dict[str, str]) -> None:
    with refused(BadInputError, **message):
        run(*events)


def test_the_real_clock_takes_links_down_in_both_directions() -> None:
    with refused(EnvironmentLacksError, place="events[0].link", problem="valid: clock: virtual"):
        run({"link": DIRECTION, "state": "down", "at": "1us"}, clock="real")

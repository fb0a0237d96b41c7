"""The management network is down: switches go on by their tables, and the controller is blind until it is back."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.refusals import refused
from weft.errors import BadInputError
from weft.quantities.units import PS_PER_US
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import parse_scenario

SCENARIO: dict[str, Any] = {
    "clock": "virtual",
    "fabric": {"leaves": 2, "spines": 2, "hosts_per_leaf": 4, "planes": 1, "host_rate": "100Gb/s"},
    "int": False,
    "transport": {"retransmission": "selective-repeat"},
    "control": {"latency": "10us", "detection": "5us"},
    "traffic": [{"permutation": "4MiB", "data": "lengths"}],
}
FAILURE = [{"link": "p0l0<->p0s1", "state": "down", "at": "50us"}]


@cache
def run(until: str = "", with_failure: bool = True) -> RunResult:
    control = SCENARIO["control"] | ({"outages": [{"at": "20us", "until": until}]} if until else {})
    events = FAILURE if with_failure else []
    return run_scenario(parse_scenario(SCENARIO | {"control": control, "events": events}))


def test_an_outage_alone_changes_nothing_of_the_traffic() -> None:
    """Switches forward by the tables that they have."""
    assert run("400us", with_failure=False).flows[0].time_ps == run(with_failure=False).flows[0].time_ps


def reprogrammed_after_ps(result: RunResult) -> int:
    """The time from the failure until the last table follows it."""
    (event,) = result.link_events
    assert event.happened_ps is not None
    assert event.reprogrammed_ps is not None
    return event.reprogrammed_ps - event.happened_ps


def test_tables_follow_a_failure_only_after_the_outage() -> None:
    """It takes detection, half a latency for the message, which waits for the outage's end, and one for the write."""
    assert reprogrammed_after_ps(run()) == (5 + 5 + 10) * PS_PER_US
    assert reprogrammed_after_ps(run("400us")) == (400 - 50 + 5 + 10) * PS_PER_US
    assert run().link_events[0].detected_ps == run("400us").link_events[0].detected_ps


def test_the_longer_the_controller_is_blind_the_later_the_flows_towards_the_dead_link_end() -> None:
    """The other leaf's flows through the spine are lost until the controller reroutes them."""
    times_ps = [run(until).flows[0].time_ps for until in ("", "400us", "2ms")]
    assert times_ps == sorted(times_ps)
    assert times_ps[0] < times_ps[2]
    assert run("2ms").flows[0].bytes_delivered == run().flows[0].bytes_delivered


def test_results_say_what_waited() -> None:
    (outage,) = run("400us").management_outages
    assert (outage.began_ps, outage.ended_ps) == (20 * PS_PER_US, 400 * PS_PER_US)
    assert outage.messages_held >= 1
    assert "management_outages" not in run().as_dict()
    assert run("400us").as_dict()["management_outages"][0]["messages_held"] == outage.messages_held


@pytest.mark.parametrize(
    "outages", [[{"at": "20us", "until": "20us"}], [{"at": "5us", "until": "9us"}, {"at": "8us", "until": "12us"}]]
)
def test_outages_end_and_follow_each_other(outages: list[dict[str, str]]) -> None:
    with pytest.raises(BadInputError):
        parse_scenario(SCENARIO | {"control": {"outages": outages}})


def test_outages_do_not_go_with_health() -> None:
    changed = {"control": {"outages": [{"at": "5us", "until": "9us"}]}, "health": {}}
    with refused(BadInputError, place="scenario: control.outages", valid="[]"):
        run_spec(parse_scenario(SCENARIO | changed))

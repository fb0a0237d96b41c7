"""Link-level retry in fabrics: transports do not notice what links lose, and what does not go with it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.refusals import refused
from weft import topologies
from weft.clocks.environment import require_for
from weft.errors import BadInputError, EnvironmentLacksError
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.scenario.options import FabricOptions

ALL = {"links": ["*<->*"]}
TREE: dict[str, Any] = {
    "clock": "virtual",
    "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "host_rate": "100Gb/s", "delay": "1us"},
    "traffic": [{"permutation": "2MiB", "data": "lengths"}],
}


def run(**keys: Any) -> RunResult:
    return run_scenario(parse_scenario(TREE | keys))


@pytest.mark.parametrize("faults", [{"loss": 0.001}, {"bit_error_rate": 1e-7}])
def test_a_transport_does_not_notice_what_links_lose(faults: dict[str, float]) -> None:
    lossy = run(faults=faults)
    assert lossy.retransmissions > 100  # go-back-N from end to end
    retried = run(faults=faults, link_retry=ALL)
    assert retried.retransmissions == 0
    assert retried.drops == {}
    lost = sum(each.lost_packets for each in retried.link_retries)
    assert lost > 10
    assert all(each.replays == each.nacks + each.timeouts for each in retried.link_retries)
    assert sum(each.given_up_packets for each in retried.link_retries) == 0
    assert retried.flows[0].bytes_delivered == 4 << 21


def test_each_loss_costs_the_time_until_its_nack() -> None:
    """One flow over two links, of which the first loses frames: a NACK is back in two delays and a frame's time."""
    one = [{"incast": "h0", "bytes_per_sender": "8MiB", "data": "lengths"}]
    fabric = TREE["fabric"] | {"leaves": 1, "spines": 0}
    window = {"parameters": {"window": "1MiB"}}
    clean = run(fabric=fabric, traffic=one, transport=window)
    loss = {"links": [{"link": "h*->p0l*", "loss": 0.001}]}
    result = run(fabric=fabric, traffic=one, transport=window, faults=loss, link_retry=ALL)
    found = [each for each in result.link_retries if each.nacks > 2]
    (uplink,) = found
    extra_ps = result.flows[0].time_ps - clean.flows[0].time_ps
    assert extra_ps == pytest.approx(uplink.nacks * 2_200_000, rel=0.1)
    assert uplink.replaying_ps == pytest.approx(extra_ps, rel=0.1)


def test_without_faults_a_run_is_the_same() -> None:
    plain, retried = run(), run(link_retry=ALL)
    assert retried.link_retries == []
    assert plain.flows[0].time_ps == retried.flows[0].time_ps


def test_runs_repeat_with_any_number_of_workers() -> None:
    first, second = (run(faults={"loss": 0.01}, link_retry=ALL, workers=workers).as_dict() for workers in (1, 2))
    assert first == second


def test_credits_go_with_it() -> None:
    result = run(faults={"loss": 0.001}, link_retry=ALL, credits={"classes": [3]})
    assert result.retransmissions == 0
    assert result.drops == {}


def test_a_link_that_fails_is_left_and_comes_back() -> None:
    events = [
        {"link": "p0l0<->p0s1", "state": "down", "at": "30us"},
        {"link": "p0l0<->p0s1", "state": "up", "at": "200us"},
    ]
    fabric = TREE["fabric"] | {"spines": 2}
    result = run(fabric=fabric, events=events, faults={"loss": 0.001}, link_retry=ALL)
    assert result.flows[0].bytes_delivered == 4 << 21
    assert [each.happened_ps is not None for each in result.link_events] == [True, True]


def test_a_direction_that_loses_everything_gives_up() -> None:
    events = [
        {"link": "p0l0->p0s0", "state": "down", "at": "30us"},
        {"link": "p0l0->p0s0", "state": "up", "at": "300us"},
    ]
    result = run(events=events, link_retry=ALL | {"attempts": 2})
    gave_up = sum(each.given_up_packets for each in result.link_retries)
    assert gave_up > 0
    assert result.drops["link lost"] == gave_up
    assert result.retransmissions > 0
    assert result.flows[0].bytes_delivered == 4 << 21


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"pfc": {"classes": [3]}}, "does not go with pfc"),
        ({"switching": {"mode": "cut-through"}}, "only a whole frame can be checked"),
        ({"faults": {"duplicate": 0.1}}, "keeps frames in order"),
        ({"faults": {"links": [{"link": "h0->p0l0", "duplicate": 0.1}]}}, "keeps frames in order"),
        ({"fidelity": {"segment": "16KiB"}}, "segments do not go with link_retry"),
        ({"fidelity": {"fast_forward": 0.01}}, "fast-forward does not go with link_retry"),
        ({"link_retry": {"links": ["h0->p0l0"]}}, "name both"),
        ({"link_retry": {"timeout": "1us"}}, "which links send again"),
        ({"link_retry": {"links": ["h9<->p0l0"]}}, "no link 'h9<->p0l0'"),
        ({"link_retry": ALL | {"timeout": "2us"}}, "no longer than an answer takes"),
        ({"link_retry": ALL | {"buffer": "1KiB"}}, "hold no frame"),
    ],
)
def test_what_does_not_go_with_it_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        run(**{"link_retry": ALL} | keys)
    assert words in str(caught.value)


def test_the_real_clock_refuses_it() -> None:
    options = FabricOptions.model_validate({"clock": "real", "link_retry": ALL})
    with refused(EnvironmentLacksError, place="link_retry.links", problem="the virtual clock's"):
        require_for(topologies.leaf_spine(), options)

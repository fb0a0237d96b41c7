"""What the controller does about links that flap, lose packets or are slow, and for its operator, in virtual time."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.refusals import refused
from weft import Fabric, topologies
from weft.controller.elements import Element, named_element, switch_element
from weft.controller.errors import SettingError
from weft.controller.event_log import ControllerEvent
from weft.controller.operations import OperationRefusedError
from weft.errors import BadInputError, EnvironmentLacksError
from weft.results.controller_events import CONTROLLER_EVENTS
from weft.results.printing import print_run
from weft.results.results_file import read_results
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import EventSection, parse_scenario

US = 10**6
FABRIC = {
    "planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "10Gbps", "delay": "1us",
}  # fmt: skip
LINK = "p0l0<->p0s1"
FLAPPING = {"link": LINK, "state": "flapping", "count": 10, "period": "20us", "at": "10us"}
DAMPING = {"flap_damping": {"half_life": "100us", "max_suppress": "400us"}}


def run(**keys: Any) -> RunResult:
    scenario = {
        "clock": "virtual",
        "fabric": FABRIC,
        "traffic": [{"permutation": "1MiB"}],
        "transport": {"retransmission": "selective-repeat", "path": "spray"},
    }
    return run_scenario(parse_scenario(scenario | keys))


def kinds(result: RunResult) -> Counter[str]:
    return Counter(event.kind for event in result.controller_events)


def of_kind(result: RunResult, kind: str) -> list[ControllerEvent]:
    return [event for event in result.controller_events if event.kind == kind]


def writes(result: RunResult) -> int:
    """Return how often the controller has written anything."""
    return sum(event.entries > 0 for event in result.controller_events)


def sent(result: RunResult, switch: str, peer: str) -> int:
    """Return how many packets ports have sent, of switches and to peers whose names begin so."""
    ports = result.observations.tables["ports"]
    ends = zip(ports["port"].texts(), ports["peer"].texts(), strict=True)
    rows = [row for row, (a, b) in enumerate(ends) if a.startswith(switch) and b.startswith(peer)]
    return int(ports["transmitted_packets"][rows].sum())


def test_a_flapping_link_costs_a_new_plan_each_time_unless_it_is_damped() -> None:
    free, damped = run(events=[FLAPPING]), run(events=[FLAPPING], controller=DAMPING)
    for result in (free, damped):
        assert len(result.link_events) == 20
        assert [event.happened_ps for event in result.link_events[:2]] == [
            result.link_events[0].happened_ps,
            result.link_events[0].happened_ps + 10 * US,
        ]
        assert kinds(result)["link down"] == kinds(result)["link up"] == 10
        assert result.flows[0].bytes_delivered == 4 * 2**20
    assert (kinds(free)["damped"], writes(free)) == (0, 20)
    # Down, up, down, up, down, and in use again in the end.
    assert (kinds(damped)["damped"], kinds(damped)["reused"], writes(damped)) == (1, 1, 6)


def test_a_damped_link_is_used_again_when_its_penalty_has_fallen() -> None:
    result = run(events=[FLAPPING], controller=DAMPING)
    last_failure_ps = [event for event in result.link_events if event.state == "down"][-1].happened_ps
    (damped,), (reused,) = of_kind(result, "damped"), of_kind(result, "reused")
    assert damped.element == reused.element == LINK
    assert damped.time_ps == result.link_events[5].happened_ps  # it is up for the third time
    assert last_failure_ps is not None
    # Ten failures, each 20 us after the other: the last one's penalty is 1000 · (1 - 2^-2) / (1 - 2^-0.2) = 5795.
    assert reused.time_ps - last_failure_ps == pytest.approx(295 * US, rel=0.01)


def test_a_link_that_hosts_need_is_not_damped() -> None:
    result = run(events=[FLAPPING | {"link": "h0<->p0l0"}], controller=DAMPING)
    assert kinds(result)["damped"] == 0
    kept = of_kind(result, "kept in use")
    assert len(kept) == 8
    assert "without it h0 would be cut off" in kept[0].detail


def test_a_drain_and_a_restore_lose_and_repeat_nothing() -> None:
    """With go-back-N, for which a packet out of order is a loss, on one plane, whose links have room for all flows."""
    result = run(
        seed=4,
        fabric=FABRIC | {"fabric_rate": "40Gbps"},
        transport={"retransmission": "go-back-n"},
        control={"latency": "5us"},
        events=[
            {"link": LINK, "state": "drained", "at": "100us"},
            {"link": LINK, "state": "restored", "at": "500us"},
        ],
    )
    assert sent(result, "p0l0", "p0s1") > 100
    assert sent(result, "p0s1", "p0l0") > 100
    assert result.retransmissions == 0
    assert result.drops == {}
    assert [event.kind for event in result.controller_events if event.kind != "programmed"] == [
        "draining", "drained", "restored",
    ]  # fmt: skip
    (drained,) = of_kind(result, "drained")
    assert drained.element == LINK
    assert drained.duration_ps is not None
    assert 100 * US < drained.duration_ps < 350 * US


def test_a_drain_ends_with_a_restore() -> None:
    result = run(
        events=[
            {"link": LINK, "state": "drained", "at": "100us"},
            {"link": LINK, "state": "restored", "at": "110us"},
        ],
        controller={"interval": "20us"},
    )
    others = [event for event in result.controller_events if event.kind != "programmed"]
    assert [event.kind for event in others] == ["draining", "restored", "still busy"]
    assert others[-1].detail == "restored before it was drained"


def test_a_drained_switch_carries_nothing_and_then_may_go_away() -> None:
    """Its links fail while it is drained: nothing is lost, because nothing comes."""
    result = run(
        events=[
            {"switch": "p0s1", "state": "drained"},
            {"link": "p0s1<->*", "state": "down", "at": "50us"},
            {"link": "p0s1<->*", "state": "up", "at": "100us"},
            {"switch": "p0s1", "state": "restored", "at": "150us"},
        ],
    )
    for event in result.link_events:
        assert event.in_flight is None or event.in_flight.packets == 0
        assert event.refused is None or event.refused.packets == 0
        assert event.entries_written == 0
    assert result.drops == {}
    assert result.flows[0].bytes_delivered == 4 * 2**20
    assert writes(result) == 2


def test_a_plane_that_is_taken_out_is_not_used_and_comes_back() -> None:
    fabric = FABRIC | {"planes": 2}
    traffic = [{"collective": "allreduce", "algorithms": ["ring", "in-network"], "sizes": ["1MiB"]}]

    one = run(fabric=fabric, events=[{"plane": 0, "state": "drained"}], traffic=traffic)
    both = run(
        fabric=fabric,
        events=[{"plane": 0, "state": "cordoned"}, {"plane": 0, "state": "restored", "at": "1us"}],
        traffic=traffic,
    )
    assert sent(one, "p0", "") == 0
    # The ring had begun when the plane came back; the reduction in the network had not.
    assert 0 < sent(both, "p0", "") < sent(both, "p1", "")
    assert [each.algorithm for each in one.collectives] == ["ring", "in-network"]
    assert one.collectives[0].time_ps == both.collectives[0].time_ps
    assert one.collectives[1].time_ps > 1.5 * both.collectives[1].time_ps
    assert all(result.wrong == 0 for result in (*one.collectives, *both.collectives))


def test_a_reduction_goes_on_over_a_tree_that_is_drained_and_the_next_has_another() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as fabric:
        fabric.run(CollectiveRequest("allreduce", 40_000, "in-network"))
        jobs, operations = fabric.lab.controller, fabric.lab.operations
        root = jobs.jobs[0].trees[0].tree.root.switch
        fabric.lab.controller.call(operations.cordon(switch_element(topology, root)))
        assert jobs.jobs[0].trees[0].tree.root.switch == root
        assert fabric.run(CollectiveRequest("allreduce", 40_000, "in-network")).result.packets_aggregated > 0
        assert jobs.jobs[0].trees[0].tree.root.switch != root


def test_a_link_that_loses_packets_is_found_by_its_counters_and_cordoned() -> None:
    result = run(
        faults={"links": [{"link": "p0l0->p0s1", "loss": 0.05}]},
        controller={"link_watch": {"loss": 0.01, "least_packets": 100}, "interval": "20us"},
        traffic=[{"permutation": "1MiB"}],
    )
    (lossy,), (cordoned,) = of_kind(result, "lossy"), of_kind(result, "cordoned")
    assert lossy.element == cordoned.element == LINK
    assert lossy.detail.startswith("p0l0 → p0s1: ")
    whole = run(controller={"link_watch": {"loss": 0.01, "least_packets": 100}, "interval": "20us"})
    assert whole.controller_events == []


def test_a_lossy_link_that_hosts_need_is_reported_and_stays_in_use() -> None:
    result = run(
        fabric=FABRIC | {"spines": 1},
        faults={"links": [{"link": "p0l0<->p0s0", "loss": 0.05}]},
        controller={"link_watch": {"loss": 0.01, "least_packets": 100}, "interval": "20us"},
        traffic=[{"permutation": "256KiB"}],
    )
    assert set(kinds(result)) == {"lossy", "kept in use"}
    assert "would be cut off" in of_kind(result, "kept in use")[0].detail


def test_a_link_below_its_rate_is_found_by_marks_and_throughput_and_cordoned() -> None:
    def watched(*events: dict[str, Any]) -> RunResult:
        return run(
            events=list(events),
            controller={"link_watch": {"slow": 0.8}, "interval": "100us"},
            transport={"congestion_control": "dcqcn", "retransmission": "selective-repeat", "path": "spray"},
            traffic=[{"permutation": "1MiB"}],
        )

    slow = watched({"link": LINK, "state": "slow", "rate": "2Gb/s", "at": "10us"})
    assert [event.kind for event in slow.controller_events] == ["slow", "cordoned", "programmed"]
    assert re.search(r": (1\.9\d|2(\.0\d)?) of 10 Gb/s", slow.controller_events[0].detail)
    assert watched().controller_events == []


def test_a_link_that_loses_one_percent_is_cordoned_after_two_thousand_packets() -> None:
    result = run(
        faults={"links": [{"link": "p0l0->p0s1", "loss": 0.01}]},
        controller={"link_watch": {"least_packets": 2000}, "interval": "50us"},
        traffic=[{"permutation": "8MiB", "data": "lengths"}],
    )
    (lossy,), (cordoned,) = of_kind(result, "lossy"), of_kind(result, "cordoned")
    assert lossy.element == cordoned.element == LINK
    assert re.fullmatch(r"p0l0 → p0s1: \d\d of 2,[01]\d\d packets lost", lossy.detail)


@pytest.mark.parametrize("path", ["flow", "spray"])
def test_a_link_at_a_tenth_of_its_rate_is_cordoned_and_no_other(path: str) -> None:
    def watched(*events: dict[str, Any], **controller: Any) -> RunResult:
        return run(
            events=list(events),
            controller=controller,
            transport={"congestion_control": "dcqcn", "retransmission": "selective-repeat", "path": path},
            traffic=[{"permutation": "4MiB", "data": "lengths"}],
        )

    # Packets of 1,024 bytes at 1 Gb/s: 36 in an interval.
    watch = {"link_watch": {"slow": 0.8}, "interval": "300us"}
    slow_link = {"link": LINK, "state": "slow", "rate": "1Gb/s", "at": "10us"}
    slow = watched(slow_link, **watch)
    assert [event.kind for event in slow.controller_events] == ["slow", "cordoned", "programmed"]
    assert slow.controller_events[0].element == LINK
    assert re.search(r": (0\.99\d|1(\.0\d)?) of 10 Gb/s", slow.controller_events[0].detail)
    assert slow.flows[0].time_ps < watched(slow_link).flows[0].time_ps
    assert watched(**watch).controller_events == []


def test_a_run_shows_what_its_controller_did() -> None:
    result = run(
        events=[FLAPPING, {"switch": "p0s0", "state": "cordoned", "at": "600us"}],
        controller=DAMPING,
    )
    console = Console(width=200, record=True, file=io.StringIO())
    print_run(console, result)
    text = console.export_text()
    assert "what the controller saw and did" in text
    (line,) = [line for line in text.splitlines() if " damped " in line]
    assert LINK in line
    assert "penalty 2" in line
    assert "programmed" not in text  # the links' own table says so
    (table,) = CONTROLLER_EVENTS.tables
    assert len(table.part(result.controller_events).rows) == len(result.controller_events)
    assert table.part([]).is_empty


def test_files_of_results_with_operations_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    written = []
    for workers in (1, 2):
        run(
            workers=workers,
            fabric=FABRIC | {"spines": 3},
            events=[FLAPPING, {"switch": "p0s0", "state": "drained", "at": "220us"}],
            controller=DAMPING | {"link_watch": {"least_packets": 100}},
            traffic=[{"permutation": "256KiB"}],
        ).save(tmp_path / str(workers))
        written.append((tmp_path / str(workers) / "results.json").read_bytes())
    assert written[0] == written[1]
    events = json.loads(written[0])["controller_events"]
    assert {"link down", "damped", "draining"} <= {event["kind"] for event in events}
    assert read_results(tmp_path / "1" / "results.json").controller_events


@pytest.fixture(scope="module")
def fabric() -> Iterator[Fabric]:
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as running:
        yield running


def test_operations_that_would_part_hosts_or_do_nothing_are_refused(fabric: Fabric) -> None:
    operations, call = fabric.lab.operations, fabric.lab.controller.call

    def named(kind: str, name: str) -> Element:
        return named_element(fabric.topology, kind, name)

    with refused(OperationRefusedError, problem="without p0l0 h0, h1 would be"):
        call(operations.cordon(named("switch", "p0l0")))
    with refused(OperationRefusedError, problem="without h0<->p0l0 h0 would be"):
        call(operations.cordon(named("link", "h0-p0l0")))
    with refused(OperationRefusedError, problem="p0s0 is in use"):
        call(operations.restore(named("switch", "p0s0")))
    call(operations.cordon(named("switch", "p0s0")))
    with refused(OperationRefusedError, problem="p0s0 is out of use already"):
        call(operations.drain(named("switch", "p0s0")))
    with refused(OperationRefusedError, problem="would be cut off"):
        call(operations.cordon(named("switch", "p0s1")))
    call(operations.cordon(named("plane", "1")))
    with refused(OperationRefusedError, problem="without plane 0 h0, h1, h2, h3"):
        call(operations.cordon(named("plane", "0")))
    with refused(BadInputError, valid="0", problem="out of use"):
        fabric.incast("h0", 1000, plane=1)
    assert operations.cordoned == ("p0s0", "plane 1")
    for kind, name in (("switch", "p0s0"), ("plane", "1")):
        call(operations.restore(named(kind, name)))
    assert operations.cordoned == ()
    assert fabric.permutation(10_000).bytes_delivered == 8 * 10_000


def test_a_drain_that_does_not_get_quiet_ends_and_says_so() -> None:
    """What has begun on a plane goes on."""
    result = run(
        fabric=FABRIC | {"planes": 2},
        events=[{"plane": 0, "state": "drained", "at": "50us"}],
        controller={"interval": "50us", "drain_timeout": "200us"},
    )
    assert set(kinds(result)) == {"draining", "still busy"}
    (busy,) = of_kind(result, "still busy")
    assert busy.duration_ps == 200 * US
    assert "packets in the last" in busy.detail


@pytest.mark.parametrize("name", ["2", "-1", "x", "p0"])
def test_planes_that_are_not_there_are_refused(fabric: Fabric, name: str) -> None:
    with pytest.raises(SettingError, match="valid: 0 to 1"):
        named_element(fabric.topology, "plane", name)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"state": "drained"}, {"place": "scenario: events[0]", "problem": "needs exactly one of link"}),
        (
            {"link": LINK, "switch": "p0s0", "state": "drained"},
            {"place": "scenario: events[0]", "problem": "has link, switch"},
        ),
        (
            {"switch": "p0s0", "state": "down"},
            {"place": "scenario: events[0]", "valid": "cordoned, drained, restored"},
        ),
        (
            {"link": LINK, "state": "flapping", "count": 3},
            {"place": "scenario: events[0]", "problem": "period and state: flapping go"},
        ),
        (
            {"link": LINK, "state": "down", "rate": "1Gb/s"},
            {"place": "scenario: events[0]", "problem": "rate and state: slow go together"},
        ),
        (
            {"switch": "p0s7", "state": "drained"},
            {"place": "scenario: events[0].switch", "valid": "p0l0, p0l1, p0s0, p0s1"},
        ),
        ({"plane": 3, "state": "drained"}, {"place": "scenario: events[0].plane", "valid": "0 to 0"}),
        (
            {"link": "p0l0<->p0x1", "state": "drained"},
            {
                "place": "scenario: events[0].link",
                "valid": "h0<->p0l0, h1<->p0l0, p0l0<->p0s0, p0l0<->p0s1, … p0l1<->p0s1",
            },
        ),
    ],
)
def test_events_that_cannot_be_are_refused(event: dict[str, Any], message: dict[str, str]) -> None:
    with refused(BadInputError, **message):
        run(events=[event])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"flap_damping": {"reuse": 3000}}, "valid: 0 < reuse < suppress"),
        ({"flap_damping": {"max_suppress": "1us"}}, "never suppresses"),
        ({"link_watch": {"loss": 2}}, "loss"),
        ({"interval": "1ns"}, "interval"),
    ],
)
def test_settings_that_cannot_be_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        run(controller=keys)


def test_slow_links_are_not_looked_for_where_ports_pause() -> None:
    with refused(
        BadInputError, place="scenario: controller.link_watch.slow", problem="a paused port looks like a slow"
    ):
        run(controller={"link_watch": {"slow": 0.5}}, pfc={"classes": [3]})


def test_the_real_clock_cannot_change_rates() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1)
    events = [EventSection(link=LINK, state="slow", rate=10**9, at=1)]
    with refused(EnvironmentLacksError, place="events[0].state", problem="valid: clock: virtual"):
        Fabric(topology, clock="real", events=events)

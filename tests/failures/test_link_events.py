"""Links that fail and come back under the virtual clock: what is lost, who is notified when, and what follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.cli import main
from weft.errors import BadInputError, CheckFailedError
from weft.results.link_events import LinkEventResult
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import ControlSection, EventSection, parse_scenario

US = 10**6
FABRIC = {
    "planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "host_rate": "100Gbps", "delay": "1us",
}  # fmt: skip
DOWN = {"at": "30us", "link": "p0l0<->p0s1", "state": "down"}
UP = {"at": "300us", "link": "p0l0<->p0s1", "state": "up"}
CONTROL = {"latency": "50us", "detection": "20us"}


def run(**keys: Any) -> Any:
    scenario = {
        "clock": "virtual",
        "fabric": FABRIC,
        "control": CONTROL,
        "traffic": [{"permutation": "4MiB"}],
    }
    return run_scenario(parse_scenario(scenario | keys))


def sent_by(fabric: Fabric, switch: str, port: int) -> int:
    stats = fabric.lab.switch_stats()
    assert stats is not None
    sent: int = stats["switches"][switch]["ports"][str(port)]["transmit"]["transmitted"]["packets"]
    return sent


def port_to(fabric: Fabric, switch: str, peer: str) -> int:
    return next(port.number for port in fabric.topology.switch(switch).ports if port.peer.node == peer)


def test_a_failure_is_detected_reported_and_routed_around_at_its_times() -> None:
    result = run(events=[DOWN, UP], traffic=[{"incast": "h0", "bytes_per_sender": "1MiB"}])
    down, up = result.link_events
    start_ps = down.happened_ps - 30 * US
    assert up.happened_ps == start_ps + 300 * US
    for event in (down, up):
        assert event.detected_ps == event.happened_ps + 20 * US
        # Half a latency for the notification, a whole one for a request and its answer.
        assert event.reprogrammed_ps == event.detected_ps + 75 * US
        assert event.recovery_ps == 95 * US
    assert down.in_flight.packets > 0
    assert down.refused.packets > 0
    assert down.happened_ps <= down.last_loss_ps < down.reprogrammed_ps
    assert up.in_flight is up.refused is None
    # Hosts send again what was lost; that arrives after the loss, and the last of it after the tables are written.
    assert down.happened_ps < down.first_recovery_ps < down.last_recovery_ps
    assert down.reprogrammed_ps < down.last_recovery_ps
    assert up.first_recovery_ps is up.last_recovery_ps is None
    # Reliable connections send again what was lost.
    assert result.retransmissions >= down.in_flight.packets
    assert result.flows[0].bytes_delivered == 7 * 2**20
    assert result.drops["queue down"] == down.refused.packets
    assert result.packet_conservation.dropped["link cut"].packets == down.in_flight.packets
    lost = down.queued.bytes + down.refused.bytes
    assert result.packet_conservation.dropped["queue down"].bytes == lost


def test_files_of_results_are_the_same_for_every_number_of_workers(tmp_path: Path) -> None:
    written = []
    for workers in (1, 2, 3):
        run(
            events=[DOWN, UP, {"at": "31us", "link": "h2<->p0l0", "state": "down"},
                    {"at": "150us", "link": "h2<->p0l0", "state": "up"}],
            workers=workers,
            observe={"drops": True, "queues": "all"},
            faults={"loss": 0.001},
            traffic=[{"permutation": "1MiB"}],
        ).save(tmp_path / str(workers))  # fmt: skip
        written.append(
            {
                path.name: path.read_bytes()
                for path in sorted((tmp_path / str(workers)).iterdir())
                if path.name != "wall_times.json"
            }
        )
    assert len(written[0]) > 2
    assert written[0] == written[1] == written[2]
    assert b"link cut" in written[0]["drops.csv"]


def test_a_leaf_avoids_its_own_port_once_it_is_known_down_and_others_once_they_are_reported() -> None:
    """Members of ECMP groups watch their ports, so a leaf needs no controller; the other leaf does."""
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=4)
    slow = ControlSection(latency=10**9, detection=50 * US)
    with Fabric(topology, clock="virtual", control=slow) as fabric:
        event = fabric.schedule_link("p0l0", "p0s0", "down", 100 * US)
        sent = {}
        partitions = fabric.lab.partitions
        up_ps = partitions.now_ps
        leaf_port, spine_port = port_to(fabric, "p0l0", "p0s0"), port_to(fabric, "p0s0", "p0l0")

        def refused(switch: str, port: int) -> int:
            stats = fabric.lab.switch_stats()
            assert stats is not None
            dropped: int = stats["switches"][switch]["ports"][str(port)]["transmit"]["down_dropped"]["packets"]
            return dropped

        def look(name: str) -> None:
            sent[name] = (refused("p0l0", leaf_port), refused("p0s0", spine_port))

        partitions.schedule_at(up_ps + 152 * US, lambda: look("detected"))
        partitions.schedule_at(up_ps + 600 * US, lambda: look("later"))
        fabric.permutation(4 * 2**20)
        summary = fabric.summary()
    assert event.detected_ps == up_ps + 150 * US
    assert sent["detected"][0] == sent["later"][0]  # nothing more is sent that way by the leaf itself
    assert sent["later"][1] > sent["detected"][1]  # what comes from the other leaf by the spine is lost
    assert summary.flows[0].bytes_delivered == 8 * 4 * 2**20
    assert summary.link_events[0].reprogrammed_ps == event.detected_ps + 1_500 * US


def test_a_link_that_is_down_from_the_start_carries_nothing_and_costs_nothing() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
    events = [EventSection(link="p0s1<->p0l1", state="down")]
    with Fabric(topology, clock="virtual", events=events) as fabric:
        fabric.permutation(100_000)
        summary = fabric.summary()
        assert sent_by(fabric, "p0l1", port_to(fabric, "p0l1", "p0s1")) == 0
        assert sent_by(fabric, "p0s1", port_to(fabric, "p0s1", "p0l1")) == 0
        assert sent_by(fabric, "p0l1", port_to(fabric, "p0l1", "p0s0")) > 0
    (event,) = summary.link_events
    assert (event.at_ps, event.in_flight.packets, event.refused.packets) == (None, 0, 0)
    assert summary.retransmissions == 0
    assert summary.drops == {}


def test_a_host_without_its_link_waits_and_goes_on() -> None:
    result = run(
        events=[
            {"at": "20us", "link": "p0l0<->h0", "state": "down"},
            {"at": "400us", "link": "h0<->p0l0", "state": "up"},
        ]
    )
    down, _ = result.link_events
    assert down.link == "h0<->p0l0"
    assert down.in_flight.packets > 0
    assert result.flows[0].time_ps > 400 * US
    assert result.flows[0].bytes_delivered == 8 * 4 * 2**20


def test_without_repair_a_host_that_is_cut_off_fails_the_run() -> None:
    with refused(CheckFailedError, problem="retry"):
        run(events=[{"at": "20us", "link": "h0<->p0l0", "state": "down"}])


def test_a_reduction_whose_tree_fails_goes_on_over_another_which_the_next_one_has() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as fabric:
        fabric.run(CollectiveRequest("allreduce", 40_000, "in-network"))
        job = fabric.lab.controller.jobs[0]
        root = job.trees[0].tree.root.switch
        event = fabric.schedule_link("p0l0", root, "down", 20 * US)
        fabric.run(CollectiveRequest("allreduce", 4_000_000, "in-network"))
        assert event.rebuilt_jobs == [1]
        assert event.resumed_ps is not None
        again = fabric.run(CollectiveRequest("allreduce", 40_000, "in-network")).result
        assert again.packets_aggregated > 0
        assert fabric.lab.controller.jobs[0].trees[0].tree.root.switch != root
        assert fabric.summary().packet_conservation is not None


def test_a_tree_that_fails_between_two_reductions_is_another_for_the_second() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as fabric:
        fabric.run(CollectiveRequest("allreduce", 40_000, "in-network"))
        root = fabric.lab.controller.jobs[0].trees[0].tree.root.switch
        event = fabric.schedule_link("p0l0", root, "down")
        fabric.permutation(10_000)
        assert event.rebuilt_jobs == [1]
        assert fabric.run(CollectiveRequest("allreduce", 40_000, "in-network")).result.packets_aggregated > 0


def test_events_after_the_end_have_not_happened() -> None:
    result = run(events=[DOWN | {"at": "1s"}], traffic=[{"permutation": "4KiB"}])
    assert result.link_events == [LinkEventResult("p0l0<->p0s1", "down", 10**12)]
    assert result.as_dict()["link_events"][0]["recovery_ps"] is None


def test_flow_control_begins_anew_with_a_link() -> None:
    """A port that was paused when its link failed is not paused forever."""
    result = run(
        traffic=[{"incast": "h0", "bytes_per_sender": "1MiB"}],
        buffer={"capacity": "1MB"},
        pfc={"classes": [3], "xoff": "20KB"},
        events=[
            {"at": "40us", "link": "p0l0<->h0", "state": "down"},
            {"at": "60us", "link": "p0l0<->h0", "state": "up"},
            {"at": "100us", "link": "p0l1<->p0s0", "state": "down"},
            {"at": "140us", "link": "p0l1<->p0s0", "state": "up"},
        ],
    )
    assert result.flows[0].bytes_delivered == 7 * 2**20
    assert result.memory[0].pauses_sent > 0


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([DOWN | {"link": "p0l0<->p0s7"}], r"events\[0\].link: no node 'p0s7'; did you mean 'p0s"),
        ([DOWN | {"link": "p0l0<->p0l1"}], r"no link joins p0l0 and p0l1; p0l0 has links to"),
        ([DOWN | {"link": "p0l0<->p0l0"}], "no link joins p0l0 and p0l0"),
        ([DOWN | {"link": "p3*<->*"}], "has no link"),
        ([{"link": "p0s1<->*", "state": "down"}, DOWN], "is down already"),
        ([UP], r"events\[0\].state: p0l0<->p0s1 is up already"),
        ([DOWN, DOWN | {"at": "40us"}], r"events\[1\].state: p0l0<->p0s1 is down already"),
        ([UP, DOWN | {"at": "400us"}], r"events\[0\].state: p0l0<->p0s1 is up already"),
        ([DOWN, UP | {"at": "30us"}], "another event at that time"),
        ([DOWN | {"at": "-3us"}], "at"),
        ([DOWN | {"state": "broken"}], "valid: 'down', 'up', 'flapping'"),
        ([DOWN | {"lnk": 1}], "unknown key 'events.*did you mean 'link'"),
        ([{"state": "down"}], "link"),
        ([DOWN | {"link": "p0l0"}], "is not a link"),
    ],
)
def test_events_that_cannot_be_are_refused_with_their_place(events: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        run(events=events)


def test_links_within_the_engine_cannot_fail_under_the_real_clock() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    with refused(BadInputError, place="events[0].link", problem="links: veth"):
        Fabric(
            topology,
            clock="real",
            links="internal",
            events=[EventSection(link="p0l0<->p0s0", state="down", at=1)],
        )


def test_a_switch_that_loses_all_its_links_is_routed_around() -> None:
    result = run(
        events=[
            {"at": "30us", "link": "p0s1<->*", "state": "down"},
            {"at": "400us", "link": "*<->p0s1", "state": "up"},
        ],
        traffic=[{"permutation": "2MiB"}],
    )
    assert [(event.link, event.state) for event in result.link_events] == [
        ("p0l0<->p0s1", "down"),
        ("p0l1<->p0s1", "down"),
        ("p0l0<->p0s1", "up"),
        ("p0l1<->p0s1", "up"),
    ]
    # The controller handles notifications one by one: one that came with the first is written a latency later.
    assert [event.recovery_ps // US for event in result.link_events] == [95, 145, 95, 145]
    assert result.flows[0].bytes_delivered == 8 * 2 * 2**20


def test_a_link_may_be_down_from_the_command_line(tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "clock: virtual\nfabric: {planes: 1, leaves: 2, spines: 2, hosts_per_leaf: 1}\ntraffic: [{permutation: 4KiB}]\n"
    )

    def exit_code(link: str) -> Any:
        with pytest.raises(SystemExit) as left:
            main(["run", str(scenario), "--out", str(tmp_path / "out"), "--link-down", link])
        return left.value.code

    assert exit_code("p0l0-p0s1") == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [event["link"] for event in results["link_events"]] == ["p0l0<->p0s1"]
    assert exit_code("p0l0") == exit_code("p0l0-p0x1") == 3

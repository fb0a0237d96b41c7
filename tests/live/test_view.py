"""What the page is given: loads and queues as the switches count them, events, entries; bounded, whatever happens."""

import json
import re
from unittest.mock import Mock

import numpy as np
import pytest

from live_views import view_of
from weft.controller.event_log import ControllerEvent, EventLog
from weft.errors import BadInputError, CheckFailedError
from weft.live.contents import MOST_ROWS, Contents
from weft.live.events import MOST_EVENTS, Event, EventRows
from weft.live.page import live_page
from weft.live.samples import SERIES, Sample, Samples
from weft.live.view import LiveView
from weft.metrics import Family, families_of
from weft.run.fabric import Fabric
from weft.topologies import FabricSpec, fat_tree, leaf_spine
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.torus import torus


def test_loads_and_counts_are_those_of_the_switches(fabric: Fabric) -> None:
    view = view_of(fabric.lab)
    view.sample()
    before = fabric.lab.switch_stats()
    fabric.incast("h0", 256 * 1024)
    after = fabric.lab.switch_stats()
    view.sample()
    assert before is not None
    assert after is not None
    state = json.loads(json.dumps(view.state(0), allow_nan=False))
    elapsed_s = (after["now_ps"] - before["now_ps"]) / 1e12
    assert state["interval_s"] == pytest.approx(elapsed_s, rel=1e-5)
    facts = view.facts()
    for number, port in enumerate(facts["ports"]):
        switch, _, of_switch = port["name"].partition(":")
        sent = [
            stats["switches"][switch]["ports"][of_switch]["transmit"]["transmitted"]["bytes"]
            for stats in (before, after)
        ]
        shown = dict(zip(SERIES, state["ports"].get(str(number), [0] * len(SERIES)), strict=True))
        assert shown["rate_bps"] == pytest.approx((sent[1] - sent[0]) * 8 / elapsed_s, rel=1e-5)
    # h0's link is the loaded one, in the direction to h0; every link's share is that of its ports.
    (to_h0,) = (number for number, link in enumerate(facts["links"]) if link["a"] == "h0")
    assert 0.5 < state["links"][str(to_h0)][1] <= 1
    for number, (up, down) in state["links"].items():
        link = facts["links"][int(number)]
        for share, port in ((up, link["up"]), (down, link["down"])):
            if port >= 0:
                rate = facts["ports"][port]["rate_bps"]
                assert share == pytest.approx(state["ports"].get(str(port), [0])[0] / rate, abs=1e-4)
    marked = fabric.lab.controller.read_counters()["p0l0"].ports[1].ecn_marked.packets
    assert view.history(["p0l0:1"])["ports"]["p0l0:1"]["marked_packets"] == [0, marked]
    assert marked > 0
    assert ["marks begin", "p0l0:1"] in [row[1:3] for row in state["events"]]


def test_a_failed_link_is_shown_and_its_events_come_once(fabric: Fabric) -> None:
    view = view_of(fabric.lab)
    view.sample()
    assert view.state(0)["down"] == []
    link = fabric.topology.link_between("p0l0", "p0s1")
    fabric.lab.controller.call(fabric.lab.operations.link_down(link))
    view.sample()
    state = view.state(0)
    assert [fabric.topology.links[number] for number in state["down"]] == [link]
    assert [row[2] for row in state["events"]].count("p0l0<->p0s1") == 1
    assert view.state(state["next_event"])["events"] == []
    view.sample()
    assert view.state(0)["events"][: len(state["events"])] == state["events"]


def test_what_a_switch_holds_is_read_by_name(fabric: Fabric) -> None:
    contents = view_of(fabric.lab).contents
    names = contents.names("p0l0")
    assert {"ipv4_lpm", "ecmp"} <= set(names["tables"])
    found = contents.rows("p0l0", "tables", "ipv4_lpm")
    assert found["columns"] == ["destination", "action", "priority", "packets"]
    to_h0 = "set_next_hop(port=1, source_mac=02:01:00:00:00:00, destination_mac=02:00:00:00:00:01)"
    assert ["10.0.0.1/32", to_h0, "-", "0"] in found["rows"]
    assert found["more"] == 0
    counter = next(name for name in names["counters"] if name.endswith("port_sent"))
    fabric.incast("h0", 4096)
    sent = contents.rows("p0l0", "counters", counter)
    assert sent["columns"] == ["index", "packets", "bytes"]
    assert int(next(packets for index, packets, _ in sent["rows"] if index == "1")) > 0
    register = names["registers"][0]
    assert contents.rows("p0l0", "registers", register)["columns"] == ["index", "value"]
    for arguments, message in (
        (("p0l0", "tables", "nothing"), "unknown table 'nothing'"),
        (("p0l0", "registers", "nothing"), "no register 'nothing'"),
        (("p0l0", "people", "all"), r"kind 'people' \(valid: tables, counters, registers\)"),
    ):
        with pytest.raises(BadInputError, match=message):
            contents.rows(*arguments)


def test_a_large_table_is_cut_and_says_by_how_much() -> None:
    rows = [[str(number), "1"] for number in range(MOST_ROWS + 7)]
    found = Contents(lambda switch, action: (["index", "value"], rows)).rows("s1", "registers", "r")  # type: ignore[arg-type]
    assert len(found["rows"]) == MOST_ROWS
    assert found["more"] == 7


def test_a_lab_that_cannot_be_read_is_a_problem_that_passes(fabric: Fabric) -> None:
    answers: list[list[Family] | Exception] = [CheckFailedError("the switch daemon is gone")]

    def read() -> list[Family]:
        answer = answers.pop()
        if isinstance(answer, Exception):
            raise answer
        return answer

    view = LiveView(fabric.lab, read)
    view.sample()
    assert view.state(0)["problem"] == "the switch daemon is gone"
    answers.append(families_of(fabric.topology, 1.0, None, {}))
    view.sample()
    state = view.state(0)
    assert (state["problem"], state["emulated_s"], state["ports"]) == ("", None, {})


def test_what_makes_no_sense_is_a_problem_that_passes(fabric: Fabric) -> None:
    """The thread that samples goes on, and the page says that what it shows is old."""
    sent = Family("weft_port_transmitted_bytes_total", "counter", "")
    sent.add(1, switch="p9l9", port=1)
    answers = [families_of(fabric.topology, 1.0, None, {}), [sent]]
    view = LiveView(fabric.lab, lambda: answers.pop())
    view.sample()
    assert view.state(0)["problem"] == "this cannot be shown: KeyError: 'p9l9:1'"
    view.sample()
    assert view.state(0)["problem"] == ""


def families(bytes_sent: int, now_s: float) -> list[Family]:
    """Metrics of a port that has sent so much."""
    clock = Family("weft_emulated_seconds_total", "counter", "")
    clock.add(now_s)
    sent = Family("weft_port_transmitted_bytes_total", "counter", "")
    sent.add(bytes_sent, switch="p0l0", port=1)
    return [clock, sent]


def test_a_counter_that_begins_again_is_no_negative_rate() -> None:
    samples = Samples(leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=1))
    for number, bytes_sent in enumerate((1000, 3000, 500)):
        samples.add(families(bytes_sent, float(number)))
    assert samples.history([0])["ports"]["p0l0:1"]["rate_bps"] == [None, 16000.0, 4000.0]


def test_samples_are_bounded() -> None:
    clock = iter(range(10_000))
    samples = Samples(leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=1), lambda: float(next(clock)))
    for number in range(700):
        samples.add(families(number * 125, float(number)))
    history = samples.history([0])
    assert history["ages_s"] == [float(age) for age in range(300, 0, -1)]
    assert set(history["ports"]["p0l0:1"]["rate_bps"]) == {1000.0}


def sample(dropped: int, jobs: tuple[str, ...] = ()) -> Sample:
    ports = np.zeros((12, len(SERIES)))
    ports[:, SERIES.index("dropped_packets")] = dropped
    return Sample(1.0, 1.0, ports, np.zeros(1), np.zeros(1), frozenset(jobs))


def test_spells_of_drops_and_jobs_have_a_beginning_and_an_end() -> None:
    rows = EventRows([f"s:{number}" for number in range(12)], ["s<->h"])
    for dropped, jobs in ((0, ()), (2, ("7",)), (3, ("7",)), (0, ())):
        rows.follow_sample(sample(dropped, jobs), "1 s")
    found = [row[1:] for row in rows.since(0)]
    assert found[0] == ["job begins", "job 7", ""]
    assert found[1] == ["drops begin", "s:0", ""]
    assert found[9] == ["drops begin", "4 more ports", ""]
    assert found[10] == ["job ends", "job 7", ""]
    assert found[11] == ["drops end", "s:0", "5 in all"]
    assert len(found) == 20
    rows.follow_links(frozenset({0}), "2 s")
    rows.follow_links(frozenset(), "3 s")
    assert [row[:3] for row in rows.since(20)] == [["2 s", "link down", "s<->h"], ["3 s", "link up", "s<->h"]]


def test_events_are_bounded_and_those_of_the_controller_come_once() -> None:
    rows, log = EventRows([], []), EventLog(most=4)
    for number in range(3):
        log.add(ControllerEvent(number, "link down", f"l{number}"))
    rows.follow_log(log)
    rows.follow_log(log)
    assert [row[2] for row in rows.since(0)] == ["l0", "l1", "l2"]
    for number in range(3, 9):  # the log has forgotten two of these
        log.add(ControllerEvent(number, "link up", f"l{number}"))
    rows.follow_log(log)
    assert [row[2] for row in rows.since(3)] == ["l5", "l6", "l7", "l8"]
    for _ in range(MOST_EVENTS + 5):
        rows.add(Event("1 s", "job begins"))
    assert len(rows.since(0)) == MOST_EVENTS
    assert len(rows.since(rows.added - 2)) == 2
    assert rows.since(rows.added + 9) == []


@pytest.mark.parametrize(
    ("spec", "hidden"),
    [
        (leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2), 0),
        (leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=24), 0),  # hosts in blocks
        (fat_tree(k=4), 0),
        (torus(shape=(3, 3)), 0),
        (dragonfly(groups=5, routers_per_group=2, global_links_per_router=2), 0),
        (leaf_spine(planes=1, leaves=64, spines=16, hosts_per_leaf=8), 0),  # in groups
    ],
    ids=["leaf-spine", "blocks", "fat-tree", "torus", "dragonfly", "groups"],
)
def test_every_link_of_a_drawing_can_be_coloured(spec: FabricSpec, hidden: int) -> None:
    lab = Mock(fabric=spec, switch_stats=lambda: None)
    lab.options.dilation = 1.0
    page = live_page(LiveView(lab, list), "a <b>", "n0nce")
    keys = [int(key) for found in re.findall(r'data-links="([\d ]+)"', page) for key in found.split()]
    assert len(spec.links) - len(set(keys)) == hidden
    assert "a &lt;b&gt;" in page
    assert page.count('nonce="n0nce"') == page.count("<script") + page.count("<style")
    assert "$" not in re.sub(r"(?s)<script.*?</script>", "", page)

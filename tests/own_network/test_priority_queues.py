"""`priority_queues` of a network file: a full queue of a low priority keeps nothing from a high one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tutorial_clone import STATION, seen

from tests.refusals import refused
from weft.run.runner import run_scenario
from weft.scenario.network_file import load_scenario_or_network
from weft.scenario.parsing import Change
from weft.topologies.errors import TopologyError
from weft.topologies.networks import read_network

PROGRAM = Path(__file__).parent / "priorities" / "priorities.p4"
FRAMES = 200
LOW, HIGH = 0x11, 0x22
PS_PER_MS = 10**9
SERIALISED_MS = 8 * 1_024 / 5_000  # a frame of 1,000 bytes with preamble, CRC and gap, at 5 Mb/s


def p4_utils(folder: Path, queues: object) -> Path:
    links: list[Any] = [["h1", "s1", {"port2": 1}], ["h2", "s1", {"port2": 2}]]
    links.append(["h3", "s1", {"port2": 3, "bw": 5, "max_queue_size": 10}])
    switch = {"p4_src": PROGRAM.name} | ({} if queues is None else {"priority_queues_num": queues})
    tree = {
        "topology": {
            "assignment_strategy": "l2",
            "default": {"max_queue_size": 10, "auto_arp_tables": False},
            "links": links,
            "hosts": {"h1": {}, "h2": {}, "h3": {}},
            "switches": {"s1": switch},
        }
    }
    return written(folder / "p4app.json", tree)


def tutorials(folder: Path, queues: object) -> Path:
    tree = {
        "hosts": {f"h{each}": {"ip": f"10.0.0.{each}/24", "mac": f"00:00:00:00:00:0{each}"} for each in (1, 2, 3)},
        "switches": {"s1": {} if queues is None else {"priority_queues": queues}},
        "links": [["h1", "s1-p1"], ["h2", "s1-p2"], ["h3", "s1-p3", 0, 5]],
    }
    return written(folder / "topology.json", tree)


def written(path: Path, tree: object) -> Path:
    shutil.copy(PROGRAM, path.parent)
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def arrivals(path: Path) -> list[tuple[int, int]]:
    """Return the kinds of the frames that h3 gets, each with its queue: each of both hosts sends at 8 Mb/s."""

    def frames(kind: int) -> list[list[object]]:
        frame = bytes(12) + b"\x12\x34" + bytes([kind]) * 986
        return [[number * PS_PER_MS, frame.hex()] for number in range(FRAMES)]

    traffic = {
        "script": {"h1": STATION, "h2": STATION, "h3": STATION},
        "parameters": {"h1": {"frames": frames(LOW)}, "h2": {"frames": frames(HIGH)}},
        "duration": "5s",
    }
    scenario, _ = load_scenario_or_network(path, [Change("traffic", [traffic], "--set")], "virtual")
    return [(frame[14], frame[15]) for _, frame in seen(run_scenario(scenario), "h3")]


def high_while_sending(frames: list[tuple[int, int]]) -> float:
    """Return the share of frames of the high priority among those that leave while both hosts send."""
    leaving = [kind for kind, _ in frames[: int(FRAMES / SERIALISED_MS)]]
    return leaving.count(HIGH) / len(leaving)


def test_a_high_priority_gets_the_whole_link(tmp_path: Path) -> None:
    frames = arrivals(p4_utils(tmp_path, 8))
    assert high_while_sending(frames) > 0.98, "only the first frame of the low priority is before them"
    assert LOW in dict(frames[-5:]), "what waits at a low priority leaves in the end"
    assert set(frames) == {(LOW, 0), (HIGH, 7)}, "egress reads the queue in standard_metadata.qid"


@pytest.mark.parametrize("queues", [None, 1])
def test_without_them_priorities_share_a_ports_memory(queues: object, tmp_path: Path) -> None:
    assert high_while_sending(arrivals(p4_utils(tmp_path, queues))) < 0.9


def test_the_tutorials_key_means_the_same(tmp_path: Path) -> None:
    assert high_while_sending(arrivals(tutorials(tmp_path, 8))) > 0.98


@pytest.mark.parametrize(("make", "place"), [(p4_utils, "topology.switches.s1.priority_queues_num"),
                                             (tutorials, "switches.s1.priority_queues")])  # fmt: skip
def test_other_numbers_are_refused(make: Any, place: str, tmp_path: Path) -> None:
    for value in (0, 9, "many"):
        path = make(tmp_path, value)
        with refused(TopologyError, place=f"{path.name}, {place}", valid="1 to 8"):
            read_network(path)

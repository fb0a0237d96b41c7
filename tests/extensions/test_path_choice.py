"""Choices of path in Python: on a fabric, by scenario."""

from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

import weft.traffic.layers  # noqa: F401  binds what follows INT's EtherType
from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.results.run_result import RunResult
from weft.run.runner import Captures, run_scenario
from weft.scenario import load_scenario, parse_scenario

EXAMPLE = ROOT / "examples" / "plb.yaml"
MINE = """\
import weft

class Constant(weft.PathChoice):
    def __init__(self, path, rng, value=5):
        super().__init__(path, rng)
        self.value = value

    def entropy(self, now_ps, sequence, retransmission):
        return self.value

class Counting(weft.PathChoice):
    "One path for every eight packets; what becomes of them must add up."
    def __init__(self, path, rng):
        super().__init__(path, rng)
        self.sent, self.delivered = 0, 0

    def entropy(self, now_ps, sequence, retransmission):
        assert not retransmission
        assert sequence == self.sent
        self.sent += 1
        return sequence // 8

    def on_delivered(self, now_ps, entropy, round_trip_ps, congestion_experienced):
        assert entropy == self.delivered // 8
        assert round_trip_ps >= self.path.base_round_trip_ps // 2
        self.delivered += 1
        assert self.delivered <= self.sent

    def on_lost(self, now_ps, entropy):
        raise AssertionError("nothing is lost here")

class Random(weft.PathChoice):
    def entropy(self, now_ps, sequence, retransmission):
        return int(self.rng.integers(self.entropies))

class Fails(weft.PathChoice):
    def entropy(self, now_ps, sequence, retransmission):
        if sequence == 20:
            raise LookupError("no path")
        return 0

class Silent(weft.PathChoice):
    pass
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return path


def run(mine: Path, name: str, captures: Captures | None = None, **options: Any) -> RunResult:
    tree = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 1},
        "transport": {"path": f"{mine}:{name}"} | options,
        "traffic": [{"incast": "h0", "bytes_per_sender": 64 * 1024}],
    }
    return run_scenario(parse_scenario(tree), captures=captures)


def source_ports(capture: Path) -> list[int]:
    """Of the data packets in a capture, in order."""
    return [packet[UDP].sport for packet in rdpcap(str(capture)) if len(packet) > 600]


def test_changing_paths_under_congestion_beats_staying() -> None:
    scenario = load_scenario(EXAMPLE).model_copy(update={"clock": "virtual"})
    staying = scenario.transport.model_copy(update={"path": "flow", "path_parameters": {}})
    (changing,) = run_scenario(scenario).flows
    (stayed,) = run_scenario(scenario.model_copy(update={"transport": staying})).flows
    assert changing.time_ps < 0.8 * stayed.time_ps


def test_the_entropy_is_in_the_packets(mine: Path, tmp_path: Path) -> None:
    run(mine, "Constant", Captures(tmp_path), path_parameters={"value": 77})
    assert set(source_ports(tmp_path / "h1-plane0.pcap")) == {0xC000 | 77}


def test_each_packet_is_asked_for_and_accounted_for(mine: Path, tmp_path: Path) -> None:
    selective = {"retransmission": "selective-repeat", "reordering_window": "1ms"}
    run(mine, "Counting", Captures(tmp_path), **selective)
    ports = source_ports(tmp_path / "h1-plane0.pcap")
    assert ports == [0xC000 | number // 8 for number in range(64)]


def test_what_is_drawn_repeats_with_the_seed(mine: Path) -> None:
    selective = {"retransmission": "selective-repeat", "reordering_window": "1ms"}
    assert run(mine, "Random", **selective).as_dict() == run(mine, "Random", **selective).as_dict()


def test_what_it_raises_ends_the_run(mine: Path) -> None:
    with refused(BadInputError, problem="LookupError: no path, raised by"):
        run(mine, "Fails")


@pytest.mark.parametrize("value", [-1, 1 << 14, 0.5, None])
def test_an_entropy_has_fourteen_bits(mine: Path, value: Any) -> None:
    message = rf"Constant.entropy\(\) returned {value} \(valid: whole numbers from 0 to 16383\)"
    with pytest.raises(BadInputError, match=message):
        run(mine, "Constant", path_parameters={"value": value})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "{mine}:Silent"}, ["lacks entropy()"]),
        ({"path": "{mine}:Constant", "path_parameters": {"paths": 4}}, ["'paths'", "valid: value=5"]),
        (
            {"path": "turns.cpp:turns"},
            [
                "transport.path: 'turns.cpp:turns' is a file in C++",
                "valid: flow, flowlet, plb",
                "docs/howto/path-choice.md",
            ],
        ),
        ({"path": "spry"}, ["no choice of path 'spry'", "flow, flowlet, plb", "path/to/file.py:Class"]),
        ({"path": "flow", "path_parameters": {"value": 1}}, ["path_parameters", "flow has none"]),
    ],
)
def test_what_cannot_be_used_is_reported(mine: Path, options: dict[str, Any], words: list[str]) -> None:
    options = options | {"path": options["path"].replace("{mine}", str(mine))}
    with pytest.raises(BadInputError) as caught:
        run(mine, "Silent", **options)
    assert all(word in str(caught.value) for word in words), caught.value

"""examples/own_network/queues: what probes meet is what arithmetic says of a queue, first in, first out."""

from __future__ import annotations

import re

from bottleneck import FirstInFirstOut

from weft.paths import ROOT
from weft.results.plain_hosts import SCRIPTS, UDP_FLOWS
from weft.run.runner import run_scenario
from weft.scenario.network_file import load_scenario_or_network
from weft.scenario.parsing import Change

EXAMPLE = ROOT / "examples" / "own_network" / "queues"
MS = 10**9
PROBE_BYTES, DATAGRAM_BYTES, END_BYTES = 73, 1500, 62
HOP = re.compile(r"s(\d):(\d) met (\d+), left (\d+), waited (\d+) us")


def at_bottleneck(sent_ps: int, size_bytes: int) -> tuple[int, int]:
    """Return when a frame of that size is at s1, behind a link of 1 Gb/s."""
    return sent_ps + size_bytes * 8 * 1000, size_bytes


def test_probes_meet_the_queues_that_arithmetic_has() -> None:
    scenario, _ = load_scenario_or_network(EXAMPLE / "queues.yaml")
    result = run_scenario(scenario)
    assert result.warnings == []
    (flow,) = result.of(UDP_FLOWS)
    assert flow.sent == flow.received == 167, "one every 6 ms"
    probes = [at_bottleneck(100 * number * MS, PROBE_BYTES) for number in range(1, 11)]
    datagrams = [at_bottleneck(6 * number * MS, DATAGRAM_BYTES) for number in range(167)]
    # The source repeats its last datagram until it is confirmed: later and later, at most twelve times.
    ends = [at_bottleneck((1000 + 2**number - 1) * MS, END_BYTES) for number in range(11)]
    queue = FirstInFirstOut([*probes, *datagrams, *ends], 10**6)
    (listener,) = (each for each in result.of(SCRIPTS) if each.host == "h2")
    found = [HOP.findall(line.text) for line in listener.printed]
    assert [hop for _, hop in found] == [("2", "1", "0", "0", "0")] * len(probes)
    assert [tuple(map(int, hop[2:])) for hop, _ in found] == [
        (queue.met(*probe), queue.left_behind(*probe), queue.waited_us(*probe)) for probe in probes
    ]
    assert all(hop[:2] == ("1", "3") for hop, _ in found)


def test_its_network_file_runs_by_itself() -> None:
    scenario, network = load_scenario_or_network(EXAMPLE / "topology.json", [Change("clock", "virtual", "--clock")])
    assert network is not None
    assert scenario.switching.depth_unit == "packets"

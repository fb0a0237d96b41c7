"""Runs the scenario and looks at what the switches counted. Run it: pytest"""

from pathlib import Path

from weft.run.runner import run_scenario
from weft.scenario import load_scenario

SCENARIO = Path(__file__).parent / "scenario.yaml"


def test_spines_count_the_packets_of_every_tenant() -> None:
    """h2 and h3 write to h0 over the spines, each 64 packets of 1 KiB, and h0 acknowledges; h1 is at h0's own leaf."""
    result = run_scenario(load_scenario(SCENARIO))
    assert not result.drops
    assert result.retransmissions == 0
    counted = [0, 0, 0]
    for cell in result.counters:
        if cell.switch in ("p0s0", "p0s1"):
            counted[cell.index] += cell.packets
    assert counted[2] == 64  # h3's
    assert counted[1] > 64  # h2's, and h0's acknowledgements

"""The networks of a local clone of nsg-ethz/p4-learning, which WEFT_P4_LEARNING names, in virtual time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.errors import BadInputError
from weft.run.runner import run_scenario
from weft.scenario.network_file import load_scenario_or_network
from weft.scenario.parsing import Change

CLONE = Path(os.environ.get("WEFT_P4_LEARNING", ""))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("WEFT_P4_LEARNING"),
        reason="WEFT_P4_LEARNING names no clone of nsg-ethz/p4-learning",
    ),
]
ANSWERED = [
    "examples/copy_to_cpu",
    "examples/debugging_table",
    "examples/digest_messages",
    "examples/ecmp",
    "examples/ecn",
    "examples/flowlet_switching",
    "examples/heavy_hitter",
    "examples/ip_forwarding",
    "examples/ip_forwarding_two_tables",
    "examples/multicast",
    "examples/multiqueueing",
    "examples/read_write_registers_cli",
    "examples/repeater",
    "examples/resubmit_recirculate/recirculateApp.json",
    "examples/resubmit_recirculate/resubmitApp.json",
    "examples/simple_int",
    "examples/source_routing",
    "examples/stateful_firewall",
    "examples/ternary_match",
    "examples/verify_checksum",
    "exercises/02-Repeater/thrift/solution",
    "exercises/02-Repeater/thrift/solution/p4app_table.json",
    "exercises/03-L2_Basic_forwarding/thrift/solution",
    "exercises/03-L2_Flooding/thrift/solution/p4app-all-ports.json",
    "exercises/03-L2_Flooding/thrift/solution/p4app-other-ports.json",
    "exercises/04-MPLS/thrift/mpls_basics/solution",
    "exercises/04-MPLS/thrift/mpls_stacked/solution",
    "exercises/05-ECMP/solution",
    "exercises/05-Flowlet_Switching/solution",
    "exercises/06-Heavy_Hitter_Detector/solution",
    "exercises/07-Count-Min-Sketch/solution",
]
"""Networks in which all hosts reach each other by what their files alone put into tables."""
CONTROLLED = [
    "examples/l2_learning/p4app_cpu_multi.json",
    "examples/simple_fast_convergence/p4app_one_table.json",
    "exercises/02-Repeater/p4runtime/solution",
    "exercises/03-L2_Basic_forwarding/p4runtime/solution",
    "exercises/03-L2_Flooding/p4runtime/solution/p4app-other-ports.json",
    "exercises/04-L2_Learning/thrift/solution/p4app_cpu_multi.json",
    "exercises/04-L2_Learning/p4runtime/solution/p4app_digest_multi.json",
    "exercises/04-MPLS/p4runtime/mpls_stacked/solution",
    "exercises/04-RSVP/thrift/solution",
    "exercises/08-Simple_Routing/p4runtime/solution",
    "exercises/09-Traceroutable/solution",
    "exercises/10-Congestion_Aware_Load_Balancing/solution/p4app-medium.json",
    "exercises/11-Packet-Loss-Detection/solution",
    "exercises/12-Fast-Reroute/solution",
]
"""Networks that come up, and in which nothing is forwarded before a controller comes."""
REFUSED = {
    "exercises/03-L2_Basic_forwarding/thrift": "'headers' is not a type",
    "exercises/04-MPLS/thrift/mpls_basics": "control 'MyComputeChecksum' has no apply block",
    "exercises/05-ECMP": "has no 'actions' property",
    "exercises/07-Count-Min-Sketch": "s1-commands.txt cannot be read: No such file",
    "exercises/11-Packet-Loss-Detection": "unknown directive '#TODO'",
}
"""What students write is missing."""


def pings(place: str) -> tuple[int, int]:
    """Return how many pings were sent and answered."""
    path = CLONE / place if place.endswith(".json") else CLONE / place / "p4app.json"
    scenario, _ = load_scenario_or_network(path, [Change("clock", "virtual", "--clock")], "virtual")
    found = run_scenario(scenario).traffic["pings"]
    return sum(each.sent for each in found), sum(each.answered for each in found)


@pytest.mark.parametrize("place", ANSWERED)
def test_files_alone_make_hosts_reach_each_other(place: str) -> None:
    sent, answered = pings(place)
    assert sent >= 2
    assert answered == sent


@pytest.mark.parametrize("place", CONTROLLED)
def test_others_wait_for_a_controller(place: str) -> None:
    sent, answered = pings(place)
    assert sent >= 2
    assert answered == 0


@pytest.mark.parametrize(("place", "words"), REFUSED.items())
def test_what_is_unfinished_is_refused(place: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        pings(place)

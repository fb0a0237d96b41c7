"""Drops are packets that were lost, each counted once; the line on conservation adds up as it is printed."""

import io
import re
from collections import Counter

import pytest
from rich.console import Console

from weft import topologies
from weft.errors import CheckFailedError
from weft.results.printing import print_run
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import parse_scenario

TOPOLOGY = topologies.leaf_spine(
    planes=1, leaves=2, spines=2, hosts_per_leaf=2, host_rate_bps=10**10, queue_capacity_bytes=60_000
)
FAULTS = {"faults": {"loss": 0.01, "duplicate": 0.02, "bit_error_rate": 1e-7}}


def run(what, tree):
    options = {key: getattr(parse_scenario(tree), key) for key in tree}
    with Fabric(TOPOLOGY, clock="virtual", seed=2, **options) as fabric:
        what(fabric)
        return fabric.summary()


def incast(fabric):
    fabric.incast("h0", 200_000)


def in_network(fabric):
    fabric.run(CollectiveRequest("allreduce", 1 << 17, "in-network"))


def link_failure(fabric):
    fabric.schedule_link("p0l0", "p0s0", "down", 50_000_000)
    fabric.permutation(1 << 20)


@pytest.mark.parametrize(
    ("what", "tree", "causes"),
    [
        (incast, {}, {"queue full"}),
        (incast, FAULTS, {"queue full", "link lost", "link corrupted"}),
        (in_network, FAULTS, {"link lost", "link corrupted"}),
        (link_failure, {}, {"link cut"}),
        (in_network, {}, set()),
    ],
)
def test_drops_and_what_aggregation_absorbs_are_all_that_ended_on_its_way(what, tree, causes):
    summary = run(what, tree)
    ended = sum(each.packets for each in summary.packet_conservation.dropped.values())
    assert sum(summary.drops.values()) + sum(summary.absorbed.values()) == ended
    assert causes <= {*summary.drops}
    assert not any(reason.startswith("aggregation") for reason in summary.drops)
    if not tree and what is in_network:
        assert summary.drops == {}
    plane = summary.planes[0]
    assert summary.drops.get("link lost", 0) == plane.injected_losses
    assert summary.drops.get("link corrupted", 0) == plane.corrupted_packets
    assert summary.drops.get("queue full", 0) == plane.tail_drops


@pytest.mark.parametrize("what", [incast, link_failure])
def test_drops_that_are_recorded_one_by_one_are_those_that_are_summed(what):
    summary = run(what, FAULTS | {"observe": {"drops": True}})
    reasons = Counter(summary.observations.tables["drops"]["reason"].texts().tolist())
    assert dict(reasons) == summary.drops


def test_repeated_contributions_are_absorbed_not_dropped():
    absorbed = run(in_network, FAULTS).absorbed
    assert absorbed["repeated_contributions"] > 0
    assert absorbed["contributions"] > 0


@pytest.mark.parametrize("what", [incast, in_network, link_failure])
def test_the_line_on_conservation_adds_up(what):
    summary = run(what, FAULTS)
    text = io.StringIO()
    print_run(Console(file=text, width=400), summary)
    (line,) = re.findall(r"packet conservation: (.*); none is missing", text.getvalue())
    came, went = ([int(number) for number in re.findall(r"\d+", side)] for side in line.split("="))
    assert sum(came) == sum(went) > 0
    assert ("multicast copies" in line) == (what is in_network)
    assert "duplicated by links" in line
    assert f"{sum(summary.drops.values())} dropped" in line


def test_a_run_that_fails_because_nobody_answers_says_what_to_change():
    with pytest.raises(CheckFailedError) as caught:
        run(lambda fabric: fabric.incast("h0", 5_000), {"faults": {"loss": 0.95}})
    for word in (
        "retry_exceeded (fault: network)",
        "transport.congestion_control",
        "fabric.queue_capacity",
        "weft trace",
    ):
        assert word in str(caught.value)


def test_a_run_that_is_only_late_gets_no_advice_on_lost_packets():
    with pytest.raises(CheckFailedError) as caught:
        run(lambda fabric: fabric.incast("h0", 5_000_000, timeout_s=1e-4), {})
    assert "did not finish within" in str(caught.value)
    assert "congestion_control" not in str(caught.value)

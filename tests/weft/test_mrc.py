"""Scenarios over MRC: collectives and flows are right, paths that fail are left, and what does not go is refused."""

from typing import Any

import numpy as np
import pytest

from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.scenario import ControlSection, FaultsSection, TransportSection, TrimmingSection, parse_scenario

US = 10**6
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=4, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US)
MRC = TransportSection(protocol="mrc")


def made(**options: Any) -> Fabric:
    return Fabric(TOPOLOGY, clock="virtual", int_telemetry=False, **({"transport": MRC} | options))


def totals(fabric: Fabric) -> dict[str, int]:
    each = [host["totals"] for host in fabric.hosts.stats()]
    return {name: sum(one[name] for one in each) for name in each[0]}


def inputs(ranks: int = 4) -> list[Any]:
    return [np.random.default_rng(rank).integers(-99, 99, 60_000, np.int32) for rank in range(ranks)]


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("loss", [0.0, 0.01])
def test_an_all_reduce_is_right_whatever_is_lost(ip_version: int, loss: float) -> None:
    with made(ip_version=ip_version, faults=FaultsSection(loss=loss)) as fabric:
        given = inputs()
        run = fabric.run(CollectiveRequest("allreduce", given, "ring"))
        assert run.result.ok
        assert all(np.array_equal(output, np.sum(given, axis=0)) for output in run.buffers)
        found = totals(fabric)
    assert found["data_packets_sent"] > 0
    assert (found["retransmitted_packets"] > 0) == (found["evs_to_assumed_bad"] > 0) == (loss > 0)


def test_flows_use_all_spines_alike() -> None:
    with made() as fabric:
        result = fabric.permutation(400_000)
        ports = fabric.lab.switch_stats()["switches"]["p0l0"]["ports"]
        found = totals(fabric)
    uplinks = [port["transmit"]["transmitted"]["bytes"] for number, port in ports.items() if int(number) > 2]
    assert result.retransmissions == 0
    assert found["out_of_sequence_packets"] > 0
    assert max(uplinks) < 1.3 * min(uplinks)


def test_a_dead_spine_is_left_and_taken_again() -> None:
    """The controller is too slow to help."""
    control = ControlSection(latency=50_000 * US, detection=0)
    with made(control=control) as fabric:
        for leaf in ("p0l0", "p0l1"):
            fabric.schedule_link(leaf, "p0s0", "down", 20 * US)
            fabric.schedule_link(leaf, "p0s0", "up", 300 * US)
        result = fabric.permutation(8_000_000)
        found = totals(fabric)
    assert result.retransmissions > 0
    assert found["timeouts"] == 0
    assert found["evs_to_assumed_bad"] > 0
    assert found["probes_answered"] > 0


def test_switches_trim_and_receivers_ask_again_at_once() -> None:
    """Nothing is dropped in an incast, no path is blamed, and each trimmed packet is refused once."""
    crowded = topologies.leaf_spine(
        planes=1, leaves=1, spines=1, hosts_per_leaf=8, host_rate_bps=100 * 10**9, queue_capacity_bytes=64 << 10
    )
    with Fabric(
        crowded, clock="virtual", int_telemetry=False, transport=MRC, trimming=TrimmingSection(classes=[3])
    ) as fabric:
        result = fabric.incast("h0", 200_000)
        found = totals(fabric)
        ports = fabric.lab.switch_stats()["switches"]["p0l0"]["ports"].values()
    trimmed = sum(port["transmit"]["trimmed"]["packets"] for port in ports)
    assert trimmed > 0
    assert found["trim_nacks_received"] == found["trim_nacks_sent"] == trimmed
    assert result.retransmissions >= trimmed
    assert found["timeouts"] == found["evs_to_assumed_bad"] == 0


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({}, "packets of mrc carry no INT"),
        ({"int": False, "credits": {"classes": [3]}, "trimming": {"classes": [3]}}, "lossless by credits.classes"),
        ({"int": False, "scheduling": {"classes": [2]}}, "scheduling.classes"),
        ({"int": False, "transport": {"path": "spray"}}, "path does not go with protocol: mrc"),
        ({"int": False, "transport": {"retransmission": "go-back-n"}}, "go-back-n does not go with protocol: mrc"),
        ({"int": False, "transport": {"congestion_control": "dcqcn"}}, "dcqcn follows CNPs"),
        (
            {"int": False, "transport": {"ev_count": 4, "ev_min_active": 5}},
            r"ev_min_active: 5 \(valid: 0 to ev_count, 4",
        ),
        ({"int": False, "traffic": [{"remote_memory": [1]}]}, r"traffic\[0\]: posts READs"),
        ({"int": False, "transport": {"protocol": "rc", "ev_count": 4}}, "ev_count does not go with protocol: rc"),
    ],
)
def test_what_does_not_go_with_mrc_is_refused(tree: dict[str, Any], words: str) -> None:
    given = {"clock": "virtual", **tree, "transport": {"protocol": "mrc"} | tree.get("transport", {})}
    with pytest.raises(BadInputError, match=words):
        parse_scenario(given, "s.yaml")


def test_nscc_is_the_default() -> None:
    section = TransportSection(protocol="mrc")
    assert (section.congestion_control, section.retransmission) == ("nscc", "selective-repeat")
    assert TransportSection(protocol="mrc", congestion_control="swift").congestion_control == "swift"

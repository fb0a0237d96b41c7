"""Topology files of htsim: the fat tree that is built, and what is refused.

WEFT_HTSIM_CLONE names a local clone of ultraethernet/uet-htsim, whose topologies are read.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from weft import topologies
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.scenario import load_scenario, parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec

EXAMPLE = ROOT / "examples" / "topology_files" / "htsim.topo"
CLONE = Path(os.environ.get("WEFT_HTSIM_CLONE", "")) / "htsim" / "sim" / "datacenter" / "topologies"
TEXT = EXAMPLE.read_text(encoding="utf-8")


def build(path: Path) -> FabricSpec:
    return build_topology(parse_scenario({"fabric": {"path": str(path)}}).fabric)


def test_the_example_is_the_fat_tree_that_htsim_builds() -> None:
    section = load_scenario(EXAMPLE.with_suffix(".yaml")).fabric
    fabric = build_topology(section)
    assert (section.host_count, section.leaf_count, section.nics_per_host) == (8, 4, 1)
    assert section.notes == ("switch_latency_ns: half of it is added to the delay of each of the switch's links",)
    assert Counter((each.role, each.tier, each.group) for each in fabric.switches) == {
        **{("leaf", 0, pod): 2 for pod in range(2)},
        **{("spine", 1, pod): 2 for pod in range(2)},
        ("core", 2, None): 2,
    }
    assert [host.nic(0).switch for host in fabric.hosts] == [f"p0l{host // 2}" for host in range(8)]
    host_link = fabric.hosts[0].nic(0).link
    assert (host_link.rate_bps, host_link.delay_ps, host_link.queue_capacity_bytes) == (10**11, 500_000, 262_144)
    found = Counter(
        (each.a.node, each.b.node, each.link.rate_bps, each.link.delay_ps)
        for each in fabric.links
        if "h" not in each.a.node
    )
    wanted = Counter(
        {(f"p0l{leaf}", f"p0s{leaf // 2 * 2 + i}", 5 * 10**10, 10**6): 1 for leaf in range(4) for i in (0, 1)}
    )
    # 2,000 ns and half of the core's 100 ns; spine i of a pod has a bundle of two links to core i.
    wanted |= Counter({(f"p0s{spine}", f"p0c{spine % 2}", 5 * 10**10, 2_050_000): 2 for spine in range(4)})
    assert found == wanted
    assert topologies.from_parameters(fabric.parameters) == fabric


def test_figures_that_the_file_lacks_come_from_the_scenario(tmp_path: Path) -> None:
    lines = [line for line in TEXT.splitlines() if not line.startswith(("Downlink", "Switch", "Queue", "Oversub"))]
    (tmp_path / "bare").write_text("\n".join(lines))
    section = {"path": str(tmp_path / "bare"), "host_rate": "25Gb/s", "fabric_rate": "40Gb/s", "delay": "3us"}
    fabric = build_topology(parse_scenario({"fabric": section}).fabric)
    assert {(nic.link.rate_bps, nic.link.delay_ps) for host in fabric.hosts for nic in host.nics} == {
        (25 * 10**9, 3_000_000)
    }
    assert {each.link.rate_bps for each in fabric.links_between("p0l0", "p0s0")} == {40 * 10**9}


REFUSED = {
    "unknown key": ("Podsize", "Podsise", r"line 4: unknown key 'Podsise' \(valid: nodes, tiers, podsize, tier\)"),
    "unknown key of a tier": ("Bundle 1", "Bundles 1", r"line 18: unknown key 'Bundles' \(valid: downlink_speed_gbps"),
    "no number": ("Tiers 3", "Tiers x", r"line 3: tiers: 'x' is out of range"),
    "two numbers": ("Tiers 3", "Tiers 3 3", r"line 3: tiers with 2 values \(valid: one whole number\)"),
    "four tiers": ("Tiers 3", "Tiers 4", r"line 3: 4 tiers \(valid: 2, 3\)"),
    "a tier too few": ("Tier 2", "# Tier 2", r"line 22: downlink_speed_gbps is at line 15 already \(valid: once\)"),
    "a tier twice": ("Tier 2", "Tier 1", r"line 21: tier 1 \(valid: 0, 1 and 2, each once\)"),
    "no hosts": ("Nodes 8", "Nodes 0", r"line 2: nodes is missing or 0 \(valid: 1 or more\)"),
    "part of a pod": ("Nodes 8", "Nodes 6", r"line 2: nodes 6 with podsize 4 \(valid: multiples of 4\)"),
    "part of a leaf": ("Podsize 4", "Podsize 1", r"podsize 1 with radix_down of tier 0 2 \(valid: multiples of 2\)"),
    "wrong radix": (
        "Radix_Down 4",
        "Radix_Down 8",
        r"line 23: radix_down 8 of tier 2, with 2 pods and bundles of 2 \(valid: 4\)",
    ),
    "wrong bundle": ("Bundle 2", "Bundle 3", r"line 17: radix_up 2 with bundle of tier 2 3 \(valid: multiples of 3\)"),
    "wrong oversubscription": (
        "Oversubscribed 2",
        "Oversubscribed 4",
        r"line 10: oversubscribed 4, with 200 Gb/s down and 100 Gb/s up \(valid: 2\)",
    ),
    "uplinks of the top": ("Radix_Down 4", "Radix_Down 4\nRadix_Up 4", r"line 24: radix_up of tier 2 \(valid: none"),
    "bundles to hosts": ("Radix_Up 2\nOver", "Bundle 2\nRadix_Up 2\nOver", "a bundle of several links to hosts"),
    "two queues": (
        "Downlink_speed_Gbps 50\nRadix_Down 2",
        "Downlink_speed_Gbps 50\nQueue_Down 9000\nRadix_Down 2",
        None,
    ),
    "a latency too few": (
        "Downlink_Latency_ns 2000\n",
        "",
        r"line 21: tier 2 has no downlink_latency_ns to which a switch_latency_ns can be added",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_figures_that_do_not_match_are_refused_by_line(tmp_path: Path, case: str) -> None:
    old, new, message = REFUSED[case]
    assert old in TEXT
    path = tmp_path / "broken.topo"
    path.write_text(TEXT.replace(old, new))
    if message is None:
        assert build(path).links_between("p0l0", "p0s0")[0].link.queue_capacity_bytes == 9000
        path.write_text(path.read_text().replace("Queue_Down 262144", "Queue_Up 8000"))
        message = r"line 16: queue_down 9000 of tier 1, queue_up 8000 of tier 0 \(valid: one size at both ends"
    with pytest.raises(BadInputError, match=message) as raised:
        build(path)
    assert str(path) in str(raised.value)


def test_two_tiers_are_one_pod(tmp_path: Path) -> None:
    text = "Nodes 4\nTiers 2\nPodsize 2\nTier 0\nRadix_Down 2\nRadix_Up 2\nTier 1\nRadix_Down 2\n"
    (tmp_path / "flat").write_text(text)
    with pytest.raises(BadInputError, match=r"line 3: podsize 2 with two tiers \(valid: 4, all nodes\)"):
        build(tmp_path / "flat")
    many = text.replace("Nodes 4", "Nodes 2000000000").replace("Podsize 2", "Podsize 2000000000")
    (tmp_path / "flat").write_text(many.replace("Radix_Down 2\n", "Radix_Down 1000000000\n", 1))
    with pytest.raises(BadInputError, match=r"line 1: 2000000000 nodes \(valid: 1 to 2000000\)"):
        build(tmp_path / "flat")
    (tmp_path / "flat").write_text(text.replace("Podsize 2", "Podsize 4"))
    assert len(build(tmp_path / "flat").switches) == 4


@pytest.mark.skipif(
    not os.environ.get("WEFT_HTSIM_CLONE"), reason="WEFT_HTSIM_CLONE names no clone of ultraethernet/uet-htsim"
)
@pytest.mark.parametrize(
    ("name", "hosts", "switches"),
    [
        ("leaf_spine_tiny", 32, (4, 2, 0)),
        ("test", 8, (4, 4, 4)),
        ("fat_tree_128_8os", 128, (32, 8, 2)),
        ("fat_tree_1024_4os", 1024, (128, 32, 16)),
        ("leaf_spine_1024_oversub_8-1", 1024, (32, 4, 0)),
    ],
)
def test_public_topologies_are_read(name: str, hosts: int, switches: tuple[int, int, int]) -> None:
    fabric = build(CLONE / f"{name}.topo")
    assert len(fabric.hosts) == hosts
    assert tuple(sum(each.tier == tier for each in fabric.switches) for tier in range(3)) == switches

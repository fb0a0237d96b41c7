"""The three-tier builder: HPCC's fabric, its wiring, its limits."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.refusals import refused
from weft import topologies
from weft.topologies import FabricSpec, TopologyError, fat_tree, paths
from weft.topologies.kinds.fat_tree import FatTreeSection


def hpcc() -> FabricSpec:
    return fat_tree(
        pods=5, leaves_per_pod=4, spines_per_pod=4, cores_per_spine=4, hosts_per_leaf=16,
        host_rate_bps=100e9, fabric_rate_bps=400e9,
    )  # fmt: skip


def test_hpcc_s_fabric_has_the_paper_s_numbers() -> None:
    """SIGCOMM 2019, section 5.1: 320 servers, 20 ToRs, 20 aggregation and 16 core switches."""
    fabric = hpcc()
    roles = Counter(switch.role for switch in fabric.switches)
    assert (len(fabric.hosts), roles["leaf"], roles["spine"], roles["core"]) == (
        320, 20, 20, 16,
    )  # fmt: skip
    assert {len(leaf.ports) for leaf in fabric.switches_with_role(0, "leaf")} == {20}
    assert {len(spine.ports) for spine in fabric.switches_with_role(0, "spine")} == {8}
    assert {len(core.ports) for core in fabric.switches_with_role(0, "core")} == {5}
    assert fabric.link_between("p0s7", "p0c13").link.rate_bps == 400 * 10**9
    # Every spine of the pod, and every core above it.
    assert len(paths(fabric, "h0", "h319")) == 16
    assert len(paths(fabric, "h0", "h16")) == 4


def test_the_k_ary_fat_tree_has_the_paper_s_numbers() -> None:
    """Al-Fares et al., section 2.2: k pods, k²/4 cores, k³/4 hosts, k ports at every switch."""
    for k in (2, 4, 6):
        fabric = fat_tree(k=k)
        assert len(fabric.hosts) == k**3 // 4
        assert {len(switch.ports) for switch in fabric.switches} == {k}
        assert Counter(switch.role for switch in fabric.switches) == {
            "leaf": k * k // 2, "spine": k * k // 2, "core": k * k // 4,
        }  # fmt: skip
        assert topologies.from_parameters(fabric.parameters) == fabric
        section = FatTreeSection(k=k, planes=1)
        assert (section.host_count, section.build()) == (len(fabric.hosts), fabric)


def test_oversubscription_of_each_tier_sets_its_rate() -> None:
    fabric = fat_tree(
        pods=2, leaves_per_pod=4, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=6,
        oversubscription=3, core_oversubscription=2,
    )  # fmt: skip
    rates = [
        fabric.link_between("p0l0", "p0s0").link.rate_bps,
        fabric.link_between("p0s0", "p0c0").link.rate_bps,
    ]
    assert rates == [10**10, 10**10]
    with refused(TopologyError, problem="core_rate_bps=1 and"):
        fat_tree(core_rate_bps=1, core_oversubscription=2)


def test_a_core_joins_the_same_spine_of_every_pod() -> None:
    fabric = fat_tree(pods=3, spines_per_pod=2, cores_per_spine=2)
    assert [port.peer.node for port in fabric.switch("p0c2").ports] == ["p0s1", "p0s3", "p0s5"]
    core = fabric.switch("p0c2")
    assert (str(core.address), str(core.ipv6), core.mac) == (
        "10.0.254.3",
        "fd00:0:fe::3",
        "02:03:00:02:00:00",
    )


def test_description_and_drawing_show_the_cores() -> None:
    fabric = fat_tree()
    assert topologies.describe(fabric).startswith("1 plane x (8 leaves + 8 spines + 4 cores), 16 hosts")
    assert ">p0c3<" in topologies.to_svg(fabric)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pods": 1}, {"valid": "2 to 509; one pod is a leaf/spine fabric", "problem": "pods=1 is out of range"}),
        ({"leaves_per_pod": 510}, {"valid": "1 to 509", "problem": "leaves_per_pod=510 is out of"}),
        ({"leaves_per_pod": 508}, {"valid": "at most 509", "problem": "p0s0 would have 510 ports"}),
        ({"k": 500}, {"valid": "at most 2000000", "problem": "pods=500"}),
        ({"k": 9}, {"problem": "such as 8 or 10"}),
        ({"k": 1}, {"valid": "2 to 509", "problem": "k=1 is out of range"}),
        ({"core_rate_bps": 0}, {"valid": "1000000 to 100000000000000", "problem": "core_rate_bps=0 is out of range"}),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(arguments: dict[str, int], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        fat_tree(**arguments)

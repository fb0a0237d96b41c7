"""Programs with prefixes and without ECMP: every host is reached by one path, also after a failure."""

from __future__ import annotations

from pathlib import Path

import finsy

from weft import topologies
from weft.run.fabric import Fabric

PREFIXES_P4 = Path(__file__).parent / "programs" / "prefixes.p4"
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=1)


def ports(fabric: Fabric, switch: str) -> dict[str, int]:
    """The port of each prefix."""
    found = fabric.lab.controller.read(switch, [finsy.P4TableEntry("ipv4_lpm")])
    return {str(each.match["destination"]): int(each.action.args["port"]) for each in found}


def test_every_host_is_reached_and_prefixes_are_spread() -> None:
    with Fabric(TOPOLOGY, clock="virtual", p4=PREFIXES_P4) as fabric:
        for host in TOPOLOGY.hosts:
            fabric.incast(host.name, 4096)
        summary = fabric.summary()
        assert not summary.drops
        assert summary.retransmissions == 0
        (warning,) = summary.all_warnings
        assert "switches have no table ecmp: each prefix has one next hop." in warning
        used = {port for leaf in range(4) for port in ports(fabric, f"p0l{leaf}").values()}
        assert used == {1, 2, 3}, "a leaf's host and both spines"


def test_the_seed_draws_the_next_hops() -> None:
    def hops(**options: int) -> dict[str, dict[str, int]]:
        with Fabric(TOPOLOGY, clock="virtual", p4=PREFIXES_P4, **options) as fabric:  # type: ignore[arg-type]
            return {name: ports(fabric, name) for name in ("p0l0", "p0l1", "p0l2", "p0l3")}

    one = hops(seed=1)
    assert hops(seed=2) != one
    assert hops(seed=2, hash_seed=1) == one


def test_a_failure_moves_the_prefixes_that_it_affects() -> None:
    with Fabric(TOPOLOGY, clock="virtual", p4=PREFIXES_P4) as fabric:
        before = ports(fabric, "p0l0")
        controller = fabric.lab.controller
        link = next(each for each in TOPOLOGY.links if {each.a.node, each.b.node} == {"p0l0", "p0s0"})
        gone = link.a.port if link.a.node == "p0l0" else link.b.port
        controller.link_down(link)
        during = ports(fabric, "p0l0")
        assert gone not in during.values()
        assert set(during) == set(before)
        assert {each: port for each, port in during.items() if before[each] != gone} == {
            each: port for each, port in before.items() if port != gone
        }
        controller.link_up(link)
        assert ports(fabric, "p0l0") == before

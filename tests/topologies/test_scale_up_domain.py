"""Scale-up domains: counts, names and refusals of `kind: scale_up`, and which widths their switches sum with."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.errors import JobError
from weft.controller.failures import NO_FAILURES
from weft.controller.trees import plan_tree
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.scenario.programs import macros_of
from weft.topologies import TopologyError
from weft.topologies.kinds import TOPOLOGY_KINDS, from_parameters
from weft.topologies.kinds.base import TopologyKeyError
from weft.topologies.kinds.scale_up import ScaleUpDomainSection, scale_up
from weft.topologies.scale_up_systems import SYSTEMS, SystemName


def section(**keys: Any) -> ScaleUpDomainSection:
    found = TOPOLOGY_KINDS.named("scale_up").section.model_validate({"kind": "scale_up", **keys})
    assert isinstance(found, ScaleUpDomainSection)
    found.check()
    return found


def test_a_dgx_h100_has_18_links_of_25_gbytes_per_s_on_four_switches() -> None:
    fabric = section(system="dgx-h100").build()
    assert (len(fabric.hosts), len(fabric.switches), fabric.planes) == (8, 4, 4)
    for host in fabric.hosts:
        assert sum(nic.link.rate_bps for nic in host.nics) == 450 * 8 * 10**9
        assert sorted(Counter(nic.switch for nic in host.nics).values()) == [4, 4, 5, 5]
    assert fabric.is_scale_up
    assert fabric.tree_children == 32


def test_an_nvl72_has_a_link_from_every_accelerator_to_each_of_18_switches() -> None:
    fabric = section(system="nvl72").build()
    assert (len(fabric.hosts), len(fabric.switches)) == (72, 18)
    assert {len(switch.ports) for switch in fabric.switches} == {72}
    assert sum(nic.link.rate_bps for nic in fabric.hosts[0].nics) == 900 * 8 * 10**9
    assert fabric.tree_children == 128
    tree = plan_tree(fabric, 17, [host.name for host in fabric.hosts], NO_FAILURES)
    assert len(tree.root.children) == 72


@pytest.mark.parametrize("name", ["dgx-h100-256", "nvl576"])
def test_a_second_tier_reaches_every_domain_over_as_many_links_as_the_taper_leaves(name: str) -> None:
    system = SYSTEMS[name]
    fabric = section(system=name).build()
    assert len(fabric.hosts) == system.accelerators
    for plane, links in enumerate(system.links_of_planes):
        leaves = fabric.switches_with_role(plane, "leaf")
        assert len(leaves) == system.domains
        for leaf in leaves:
            down = sum(port.peer_is_host for port in leaf.ports)
            assert down == system.domain * links
            assert len(leaf.ports) - down == down // system.oversubscription
        assert len(fabric.switches_with_role(plane, "spine")) == system.upper_switches


@settings(deadline=None, max_examples=40)
@given(
    domain=st.integers(2, 6),
    domains=st.integers(1, 3),
    switches=st.integers(1, 4),
    more_links=st.integers(0, 5),
    upper=st.integers(1, 3),
)
def test_counts_are_as_given_and_parameters_build_an_equal_fabric(
    domain: int, domains: int, switches: int, more_links: int, upper: int
) -> None:
    keys = {"accelerators": domain * domains, "switches": switches, "links": switches + more_links, "domain": domain}
    keys["upper_switches"] = upper if domains > 1 else 0
    try:
        fabric = scale_up(**keys)
    except TopologyError:
        each, rest = divmod(keys["links"], switches)
        shares = {each, each + 1} if rest else {each}
        assert domains > 1
        assert any(domain * share % upper for share in shares)
        return
    assert len(fabric.hosts) == domain * domains
    assert all(len(host.nics) == keys["links"] for host in fabric.hosts)
    assert len(fabric.switches) == switches * (domains + keys["upper_switches"])
    assert from_parameters(fabric.parameters) == fabric
    assert section(**keys, link_rate="200Gb/s").build() == fabric


def test_every_system_named_is_there_and_fits() -> None:
    assert set(get_args(SystemName)) == set(SYSTEMS)
    assert all(system.problem() is None for system in SYSTEMS.values())


def test_keys_beside_a_system_change_it() -> None:
    shape = section(system="nvl72", accelerators=8).shape
    assert (shape.accelerators, shape.domain, shape.links) == (8, 8, 18)
    assert section(accelerators=6, switches=3).shape.links == 3
    assert section(accelerators=6).shape.domain == 6


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"accelerators": 8, "domain": 3}, "domain"),
        ({"accelerators": 8, "domain": 16}, "domain"),
        ({"accelerators": 8, "domain": 4}, "upper_switches"),
        ({"accelerators": 8, "upper_switches": 2}, "upper_switches"),
        ({"accelerators": 6, "domain": 3, "upper_switches": 2}, "upper_switches"),
        ({"switches": 4, "links": 3}, "links"),
        ({"accelerators": 576, "switches": 1, "links": 1}, "domain"),
        ({"system": "nvl72", "planes": 2}, "planes"),
        ({"system": "nvl72", "ranks_per_host": 2}, "ranks_per_host"),
        ({"system": "nvl72", "host_rate": "1Gb/s"}, "host_rate"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_key(keys: dict[str, Any], key: str) -> None:
    with pytest.raises(TopologyKeyError) as caught:
        section(**keys)
    assert caught.value.key == key


def test_a_switch_of_more_than_128_accelerators_adds_nothing_up() -> None:
    fabric = scale_up(accelerators=130, switches=1, links=1, domain=130)
    with refused(JobError, valid="at most 128", problem="130 children"):
        plan_tree(fabric, 0, [host.name for host in fabric.hosts], NO_FAILURES)


def spec_of(**keys: Any) -> Any:
    return run_spec(parse_scenario({"clock": "virtual", "traffic": [], **keys}))


@pytest.mark.parametrize(("accelerators", "width"), [(32, None), (33, "64"), (64, "64"), (72, "128")])
def test_the_program_is_compiled_for_the_children_of_the_widest_switch(accelerators: int, width: str | None) -> None:
    spec = spec_of(fabric={"kind": "scale_up", "accelerators": accelerators, "switches": 1})
    assert macros_of(spec.fabric, spec.options).get("AGGREGATION_CHILDREN") == width


ALL_REDUCE = {"collective": "allreduce", "sizes": [1024]}


@pytest.mark.parametrize(
    ("fabric", "word"),
    [
        ({"leaves": 2}, "no scale-up domain"),
        ({"leaves": 2, "ranks_per_host": 2}, "no switch that reduces"),
    ],
)
def test_nvls_is_for_scale_up_domains(fabric: dict[str, Any], word: str) -> None:
    with pytest.raises(Exception, match=word):
        spec_of(fabric=fabric, traffic=[{**ALL_REDUCE, "algorithms": ["nvls"]}])


def test_both_names_of_the_switches_algorithm_are_known_on_a_scale_up_domain() -> None:
    fabric = {"kind": "scale_up", "accelerators": 4, "switches": 1}
    spec = spec_of(fabric=fabric, traffic=[{**ALL_REDUCE, "algorithms": ["nvls", "in-network"]}])
    assert spec.traffic[0].algorithms == ["nvls", "in-network"]

"""A feature and a kind of routing are one file each: found, planned, chosen, refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import finsy
import pytest

from tests.refusals import refused
from weft.controller import features, routing
from weft.controller.errors import SettingError
from weft.controller.failures import NO_FAILURES
from weft.controller.features import FEATURES, Settings
from weft.controller.plan import FabricState, Planner, desired_entities
from weft.controller.routing import ROUTING_KINDS
from weft.registry import Registry, constant_of
from weft.topologies import FabricSpec, LinkSpec, leaf_spine, shortest_path
from weft.topologies.builder import FabricBuilder

FABRIC = leaf_spine(planes=1, leaves=3, spines=2, hosts_per_leaf=1)
TOY_FEATURE = """
from weft.controller.entities import entry
from weft.controller.features.kind import Feature
from weft.quantities.section import FeatureSection

class QuarantineSection(FeatureSection):
    hosts: tuple[str, ...] = ()

def entities(fabric, settings):
    chosen = settings.of(QuarantineSection)
    def of_switch(switch):
        ports = [port for port in switch.host_ports if port.peer.node in chosen.hosts]
        return [entry("acl", {"port": port.number}, "deny", priority=100) for port in ports]
    return of_switch

KIND = Feature(name="quarantine", summary="Hosts that nothing is taken from.", tables=("acl",), entities=entities)
"""
TOY_ROUTING = """
from dataclasses import replace
from weft.controller.routing.shortest_paths import KIND as SHORTEST_PATHS, ShortestPaths

class OnePath(ShortestPaths):
    def next_hops_of(self, place):
        towards = {}
        for next_hops, switches in super().next_hops_of(place).items():
            towards[next_hops[:1]] = towards.get(next_hops[:1], 0) | switches
        return towards

KIND = replace(SHORTEST_PATHS, name="one_path", summary="The first shortest path.", plane=OnePath)
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both packages with one more file."""
    for package, registry, name, text in (
        (features, FEATURES, "quarantine", TOY_FEATURE),
        (routing, ROUTING_KINDS, "one_path", TOY_ROUTING),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        registry.look_again()
    yield
    monkeypatch.undo()
    FEATURES.look_again()
    ROUTING_KINDS.look_again()


def denied(plans: dict[str, list[object]]) -> dict[str, list[object]]:
    return {
        name: [each.match for each in plan if isinstance(each, finsy.P4TableEntry) and each.table_id == "acl"]
        for name, plan in plans.items()
    }


@pytest.mark.usefixtures("toys")
def test_a_feature_is_planned_with_its_settings() -> None:
    assert "quarantine" in FEATURES
    assert not any(denied(desired_entities(FABRIC, Settings(), FabricState())).values())  # type: ignore[arg-type]
    from weft.controller.features.quarantine import QuarantineSection  # type: ignore[import-not-found]

    settings = Settings(features=QuarantineSection(hosts=["h1"]).of_features(options=None))
    planned = denied(desired_entities(FABRIC, settings, FabricState()))  # type: ignore[arg-type]
    assert planned == {switch.name: [] for switch in FABRIC.switches} | {"p0l1": [{"port": 1}]}


@pytest.mark.usefixtures("toys")
def test_a_kind_of_routing_is_chosen_by_name() -> None:
    assert {"one_path", "shortest_paths"} <= ROUTING_KINDS.keys()
    planner = Planner(FABRIC)
    several = planner.plan(Settings(), FabricState())["p0l0"].routes
    one = planner.plan(Settings(routing="one_path"), FabricState())["p0l0"].routes
    assert any(isinstance(each, finsy.P4ActionProfileGroup) for each in several)
    assert not any(isinstance(each, finsy.P4ActionProfileGroup) for each in one)


def test_an_unknown_routing_is_reported_with_the_valid_ones() -> None:
    with refused(
        SettingError,
        valid=(
            "demand, dimension_order, dimension_order_one_lane, dimension_order_ugal, "
            "dimension_order_valiant, dragonfly_minimal, dragonfly_ugal, dragonfly_valiant, "
            "layered, shortest_paths, srv6, structured_ev, up_down"
        ),
        problem="unknown routing 'one_path'",
    ):
        Planner(FABRIC).plan(Settings(routing="one_path"), FabricState())


def test_what_is_no_kind_is_not_taken_for_one() -> None:
    assert list(Registry("weft.controller.features", "feature", constant_of(str), SettingError)) == []
    assert all(kind.summary and kind.tables for kind in (*FEATURES.values(), *ROUTING_KINDS.values()))


def direct() -> FabricSpec:
    """Three leaves in a ring, and no spine."""
    builder, link = FabricBuilder(), LinkSpec(10**10, 10**6, 512 * 1024)
    leaves = [builder.add_switch(0, "leaf") for _ in range(3)]
    for leaf in leaves:
        builder.add_host([leaf], link)
    for a, b in ((0, 1), (1, 2), (0, 2)):
        builder.add_link(leaves[a], leaves[b], link)
    return builder.build({})


def test_links_within_a_tier_are_links_of_the_fabric() -> None:
    fabric = direct()
    names = [(link.a.node, link.b.node) for link in fabric.links if link.a.node.startswith("p")]
    assert names == [("p0l0", "p0l1"), ("p0l0", "p0l2"), ("p0l1", "p0l2")]
    assert shortest_path(fabric, "h0", "h2", 0).nodes == ("h0", "p0l0", "p0l2", "h2")
    kind = ROUTING_KINDS["shortest_paths"]
    assert kind.is_deadlock_free(FABRIC)
    assert not kind.is_deadlock_free(fabric)
    plane = kind.plane(fabric, 0)
    around = plane.plan(NO_FAILURES.with_link(fabric.link_between("p0l0", "p0l2")))
    assert len(around["p0l0"]) == len(plane.plan(NO_FAILURES)["p0l0"])

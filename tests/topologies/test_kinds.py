"""A kind of topology is one file: adding it makes it available in scenarios, runs, drawings and the reference."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft import topologies
from weft.cli import weft
from weft.topologies import TopologyError, kinds
from weft.topologies.kinds import TOPOLOGY_KINDS, from_parameters

STAR = '''
"""A star: leaves around one spine."""

from typing import Annotated, Literal

from weft.quantities.definitions import whole
from weft.topologies.builder import FabricBuilder
from weft.topologies.errors import require_range
from weft.topologies.fabric import FabricSpec, LinkSpec
from weft.topologies.kinds.base import TopologyKind, TopologySection


class StarSection(TopologySection):
    """Leaves around one spine."""

    kind: Literal["star"] = "star"
    """A star."""
    arms: Annotated[int, whole(2, 16)] = 3
    """Leaves."""

    @property
    def leaf_count(self) -> int:
        return self.arms

    def network(self) -> FabricSpec:
        return star(self.planes, self.arms, self.endpoints_per_leaf, self.host_rate)


def star(planes: int = 1, arms: int = 3, hosts_per_leaf: int = 2, rate_bps: int = 10**10) -> FabricSpec:
    link = LinkSpec(rate_bps, 10**6, 512 * 1024)
    arms = require_range("arms", arms, 2, 16)
    builder = FabricBuilder()
    leaves = [[builder.add_switch(plane, "leaf") for _ in range(arms)] for plane in range(planes)]
    for arm in range(arms):
        for _ in range(hosts_per_leaf):
            builder.add_host([of_plane[arm] for of_plane in leaves], link)
    for plane, of_plane in enumerate(leaves):
        hub = builder.add_switch(plane, "hub", tier=1)
        for leaf in of_plane:
            builder.add_link(leaf, hub, link)
    parameters = {"planes": planes, "arms": arms, "hosts_per_leaf": hosts_per_leaf, "rate_bps": rate_bps}
    return builder.build({"kind": "star", **parameters})


KIND = TopologyKind("star", StarSection, star, implied_by=("arms",))
'''
SCENARIO = """
name: star
clock: virtual
fabric: {arms: 5, planes: 1, hosts_per_leaf: 1}
traffic:
  - {collective: allreduce, sizes: [4K]}
"""


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more file in the folder of kinds."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "star.py").write_text(STAR, encoding="utf-8")
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(folder)])
    TOPOLOGY_KINDS.look_again()
    yield
    TOPOLOGY_KINDS.look_again()
    sys.modules.pop("weft.topologies.kinds.star", None)


def test_the_kinds_are_those_of_the_folder() -> None:
    files = Path(kinds.__file__).parent.glob("*.py")
    others = sorted({file.stem for file in files} - {"__init__", "base", "leaf_spine"})
    assert list(TOPOLOGY_KINDS) == ["leaf_spine", *others]


@pytest.mark.usefixtures("star")
def test_a_new_kind_is_one_file(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    done = CliRunner().invoke(weft, ["run", str(scenario), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "over 5 ranks" in done.output
    picture = tmp_path / "star.svg"
    drawn = CliRunner().invoke(weft, ["topology", "draw", str(scenario), "-o", str(picture)])
    assert drawn.exit_code == 0, drawn.output
    assert "p0l4" in picture.read_text(encoding="utf-8")
    assert "## fabric (star)" in CliRunner().invoke(weft, ["schema", "--markdown"]).output


@pytest.mark.usefixtures("star")
def test_the_parameters_of_a_new_kind_build_it_again() -> None:
    fabric = TOPOLOGY_KINDS.named("star").builder(arms=4)
    assert from_parameters(fabric.parameters) == fabric
    with refused(
        TopologyError,
        valid="arms, hosts_per_leaf, planes, rate_bps",
        problem="unknown parameter 'legs' of star",
    ):
        from_parameters({"kind": "star", "legs": 4})


def test_sections_and_builders_make_equal_fabrics() -> None:
    """Scenario and Python have the same defaults, but for the number of planes of a fat tree."""
    for name, builder in (("leaf_spine", topologies.leaf_spine), ("fat_tree", topologies.fat_tree)):
        section = TOPOLOGY_KINDS.named(name).section(kind=name, planes=1)
        parameters = {key: value for key, value in section.build().parameters.items() if key != "kind"}
        assert section.build() == builder(**parameters)

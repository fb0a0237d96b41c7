"""docs/topologies.md has every example and its picture as it is drawn now. `WEFT_RENEW_PAGES=1` draws them anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from example_fabrics import EXAMPLES, routings_of

from weft.paths import ROOT
from weft.scenario import load_scenario
from weft.topologies import FabricSpec, draw
from weft.topologies.kinds.dragonfly import DragonflySection
from weft.topologies.kinds.fat_tree import FatTreeSection
from weft.topologies.kinds.torus import TorusSection

PAGE = ROOT / "docs" / "topologies.md"
PICTURES = ROOT / "docs" / "pictures" / "topologies"
LARGE = {
    "fat_tree-8192": FatTreeSection(k=32, planes=1),
    "dragonfly-8448": DragonflySection(groups=66, routers=16, global_links=8, hosts_per_leaf=8, planes=1),
    "torus-4096": TorusSection(shape=[16, 16, 16], hosts_per_leaf=1, planes=1),
}


def fabric_of(name: str) -> FabricSpec:
    if name in LARGE:
        return LARGE[name].build()
    return load_scenario(ROOT / "examples" / "topologies" / f"{name}.yaml").fabric.build()


@pytest.fixture(scope="module")
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*(path.stem for path in EXAMPLES), *LARGE])
def test_a_picture_is_what_is_drawn_now(name: str, text: str, tmp_path: Path) -> None:
    picture = PICTURES / f"{name}.svg"
    renew = os.environ.get("WEFT_RENEW_PAGES")
    drawn = draw(fabric_of(name), picture if renew else tmp_path / "drawn.svg")
    assert picture.read_text(encoding="utf-8") == drawn.read_text(encoding="utf-8")
    assert f"](pictures/topologies/{name}.svg)" in text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_page_has_the_scenario_and_routings_that_are_valid_for_it(path: Path, text: str) -> None:
    block = f"```yaml\n{path.read_text(encoding='utf-8').rstrip()}\n```"
    assert block in text
    prose = text.split(block)[0].rpartition("\n## ")[2]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"Own routing:[^|]*?\n\n", prose + "\n\n")))
    assert {each for each in named if each.startswith(("dimension", "dragonfly"))} <= set(routings_of(path))


def test_every_picture_belongs_to_the_page() -> None:
    assert {path.stem for path in PICTURES.iterdir()} == {path.stem for path in EXAMPLES} | set(LARGE)

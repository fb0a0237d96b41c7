"""docs/topologies.md has every example and its picture as it is drawn now. `WEFT_RENEW_PAGES=1` draws them anew."""

from __future__ import annotations

import os
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from example_fabrics import EXAMPLES, routings_of

from weft.paths import ROOT
from weft.scenario import load_scenario
from weft.topologies import FabricSpec, draw
from weft.topologies.kinds.dragonfly import DragonflySection
from weft.topologies.kinds.fat_tree import FatTreeSection
from weft.topologies.kinds.torus import TorusSection

LAB_PICTURES = {
    "lab-11-rails": "11-fabrics/rails.yaml",
    "lab-11-torus": "11-fabrics/torus.yaml",
    "lab-11-dragonfly": "11-fabrics/dragonfly.yaml",
    "lab-13": "13-operations/adaptive.yaml",
    "lab-14-long": "14-circuits/scenario.yaml",
    "lab-14-compact": "14-circuits/scenario.yaml:compact",
}
PAGE = ROOT / "docs" / "topologies.md"
PICTURES = ROOT / "docs" / "pictures" / "topologies"
LARGE = {
    "fat_tree-8192": FatTreeSection(k=32, planes=1),
    "dragonfly-8448": DragonflySection(groups=66, routers=16, global_links=8, hosts_per_leaf=8, planes=1),
    "torus-4096": TorusSection(shape=[16, 16, 16], hosts_per_leaf=1, planes=1),
}


def is_drawn_now(picture: Path, drawn: Path, write: Callable[[Path], object]) -> bool:
    """Return whether a picture is what is drawn; with WEFT_RENEW_PAGES it becomes so."""
    write(picture if os.environ.get("WEFT_RENEW_PAGES") else drawn)
    return not drawn.exists() or picture.read_text(encoding="utf-8") == drawn.read_text(encoding="utf-8")


def fabric_of(name: str) -> FabricSpec:
    if name in LARGE:
        return LARGE[name].build()
    return load_scenario(ROOT / "examples" / "topologies" / f"{name}.yaml").fabric.build()


@pytest.fixture(scope="module")
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*(path.stem for path in EXAMPLES), *LARGE])
def test_a_picture_is_what_is_drawn_now(name: str, text: str, tmp_path: Path) -> None:
    fabric = fabric_of(name)
    assert is_drawn_now(PICTURES / f"{name}.svg", tmp_path / "drawn.svg", lambda path: draw(fabric, path))
    assert f"](pictures/topologies/{name}.svg)" in text


@pytest.mark.parametrize("name", LAB_PICTURES)
def test_a_picture_of_a_lab_is_what_is_drawn_now(name: str, tmp_path: Path) -> None:
    scenario, _, configuration = LAB_PICTURES[name].partition(":")
    fabric = load_scenario(ROOT / "labs" / scenario).fabric.build()
    if configuration:
        fabric = fabric.in_configuration(configuration)
    picture = ROOT / "docs" / "pictures" / f"{name}.svg"
    assert is_drawn_now(picture, tmp_path / "drawn.svg", lambda path: draw(fabric, path))


def test_the_picture_of_a_cycle_is_what_the_lab_draws_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main: Callable[[Path, str, Path], None] = runpy.run_path(str(ROOT / "labs" / "12-deadlock" / "cycle.py"))["main"]
    scenario = ROOT / "labs" / "12-deadlock" / "scenario.yaml"
    picture = ROOT / "docs" / "pictures" / "lab-12.svg"
    assert is_drawn_now(picture, tmp_path / "drawn.svg", lambda path: main(scenario, "dimension_order_one_lane", path))
    assert picture.read_text(encoding="utf-8").count("waits for the next") == 5
    main(scenario, "dimension_order", tmp_path / "none.svg")
    assert capsys.readouterr().out.splitlines()[-1] == "no cycle"
    assert "waits for the next" not in (tmp_path / "none.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_page_has_the_scenario_and_routings_that_are_valid_for_it(path: Path, text: str) -> None:
    block = f"```yaml\n{path.read_text(encoding='utf-8').rstrip()}\n```"
    assert block in text
    prose = text.split(block)[0].rpartition("\n## ")[2]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"Own routing:[^|]*?\n\n", prose + "\n\n")))
    assert {each for each in named if each.startswith(("dimension", "dragonfly"))} <= set(routings_of(path))


def test_every_picture_belongs_to_the_page() -> None:
    assert {path.stem for path in PICTURES.iterdir()} == {path.stem for path in EXAMPLES} | set(LARGE)

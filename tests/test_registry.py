"""A registry lists a package's modules: order, default, errors, and what is no kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.errors import InvalidValueError
from weft.registry import Registry, classes_of, constant_of

MODULES = {
    "oak": "from toy_trees.base import Tree\nKIND = Tree('oak')\n",
    "ash": "from toy_trees.base import Tree\nKIND = Tree('ash')\nclass Mountain(Tree): pass\n",
    "rock": "KIND = 'rock'\n",
    "base": (
        "import abc\nclass Tree:\n    def __init__(self, name): self.name = name\n"
        "class Shrub(Tree, abc.ABC):\n    @abc.abstractmethod\n    def grow(self): ...\n"
    ),
}


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "toy_trees"
    folder.mkdir()
    for name, text in {"__init__": "", **MODULES}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy_trees"]:
        del sys.modules[name]


def registry_of_trees(default: str | None = None, besides: str | None = None) -> Registry[object]:
    from toy_trees.base import Tree  # type: ignore[import-not-found]

    kinds_in = constant_of(Tree)
    return Registry("toy_trees", "tree", kinds_in, InvalidValueError, default=default, besides=besides)


@pytest.mark.usefixtures("trees")
def test_kinds_stand_in_the_order_of_their_modules_after_the_default() -> None:
    assert list(registry_of_trees()) == ["ash", "oak"]
    assert list(registry_of_trees(default="oak")) == ["oak", "ash"]
    assert registry_of_trees()["oak"].name == "oak"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize("name", ["rock", "", None, ["oak"]])
def test_a_name_of_no_kind_is_refused_with_the_valid_ones(name: object) -> None:
    with refused(InvalidValueError, valid="ash, oak, or a file of yours", problem="unknown tree"):
        registry_of_trees(besides="or a file of yours").named(name)


@pytest.mark.usefixtures("trees")
def test_it_is_a_mapping() -> None:
    found = registry_of_trees()
    assert "rock" not in found
    assert found.get("rock") is None
    assert len(found) == 2
    with pytest.raises(KeyError):
        found["rock"]


def test_a_new_module_is_found_when_the_package_is_listed_again(trees: Path) -> None:
    found = registry_of_trees()
    assert "elm" not in found
    (trees / "elm.py").write_text(MODULES["oak"].replace("'oak'", "'elm'"), encoding="utf-8")
    assert "elm" not in found
    found.look_again()
    assert list(found) == ["ash", "elm", "oak"]


@pytest.mark.usefixtures("trees")
def test_classes_are_those_that_a_module_defines_itself() -> None:
    from toy_trees import ash, base, oak  # type: ignore[import-not-found]

    assert list(classes_of(base.Tree, ash)) == [ash.Mountain]
    assert list(classes_of(base.Tree, oak)) == []
    assert list(classes_of(base.Tree, base)) == []

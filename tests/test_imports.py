"""Imports between the rooms point one way (ARCHITECTURE.md, "Rooms")."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {"cache", "compiler", "engine", "switch", "controller", "topologies", "traffic"}
ALLOWED = {
    "cache": set(),
    "compiler": {"cache"},
    "engine": set(),
    "topologies": set(),
    "switch": {"cache", "engine"},
    "controller": {"topologies"},
    "traffic": {"engine", "topologies"},
}
VISIBLE_AT_THE_TOP = {"controller", "topologies", "traffic"}


def imported(path: Path) -> set[str]:
    """Names of the modules of Weft that a file imports: "weft.switch", say; "weft" and fuzz's as they are."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            # "from weft import topologies" imports a module, too.
            found |= {node.module, *(f"weft.{alias.name}" for alias in node.names if node.module == "weft")}
    return {".".join(name.split(".")[:2]) for name in found if name.split(".")[0] in ("weft", "fuzz")} - {
        "weft"
    }


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_only_what_it_may(room: str) -> None:
    files = sorted((ROOT / "weft" / room).rglob("*.py"))
    assert files
    allowed = {f"weft.{each}" for each in ALLOWED[room] | {room}}
    wrong = {
        str(path.relative_to(ROOT)): sorted(extra) for path in files if (extra := imported(path) - allowed)
    }
    assert wrong == {}


def test_weft_does_not_import_its_fuzzer() -> None:
    wrong = [
        str(path) for path in (ROOT / "weft").rglob("*.py") if any("fuzz" in name for name in imported(path))
    ]
    assert wrong == []


def test_folders_at_the_top_are_those_of_the_package() -> None:
    for name in VISIBLE_AT_THE_TOP:
        assert (ROOT / name).resolve() == ROOT / "weft" / name


def test_the_p4_folder_is_no_python_package() -> None:
    """The p4runtime distribution owns the Python name p4."""
    assert not (ROOT / "p4" / "__init__.py").exists()

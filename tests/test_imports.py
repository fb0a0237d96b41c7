"""Imports between the rooms point one way (ARCHITECTURE.md, "Rooms")."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {"cache", "compiler", "engine", "switch", "controller", "topologies", "traffic", "weft", "fuzz"}
ALLOWED = {
    "cache": set(),
    "compiler": {"cache"},
    "engine": set(),
    "topologies": set(),
    "switch": {"cache", "engine"},
    "controller": {"topologies"},
    "traffic": {"engine", "topologies"},
    "weft": ROOMS - {"weft", "fuzz"},
    "fuzz": {"compiler", "switch", "topologies", "traffic", "weft"},
}


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found & ROOMS


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_only_what_it_may(room: str) -> None:
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    wrong = {
        str(path.relative_to(ROOT)): sorted(extra)
        for path in files
        if (extra := imported_rooms(path) - ALLOWED[room] - {room})
    }
    assert wrong == {}


def test_the_p4_folder_is_no_python_package() -> None:
    """The p4runtime distribution owns the Python name p4."""
    assert not (ROOT / "p4" / "__init__.py").exists()

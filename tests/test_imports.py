"""Imports between the packages point one way (ARCHITECTURE.md, "Packages")."""

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import weft

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {
    "architectures": set(),
    "cache": set(),
    "command_errors": set(),
    "compiler": {"architectures", "cache", "paths"},
    "engine": set(),
    "hints": set(),
    "port_monitor": set(),
    "registry": {"errors"},
    "quantities": {"errors", "hints"},
    "topologies": {"cache", "errors", "hints", "quantities", "registry", "wire"},
    "switch": {"architectures", "cache", "command_errors", "engine", "errors", "hints", "port_monitor", "quantities"},
    "controller": {"cache", "command_errors", "errors", "hints", "quantities", "registry", "topologies", "wire"},
    "rdma": {"engine", "errors", "quantities", "visibility"},
    "traffic": {
        "cache",
        "engine",
        "errors",
        "port_monitor",
        "quantities",
        "rdma",
        "registry",
        "topologies",
        "verbs",
        "wire",
    },
    "verbs": {"engine", "errors", "hints", "topologies"},
    "visibility": set(),
    "wire": {"errors", "registry"},
}
# Above those, each imports only from what stands before it.
LAYERS = [
    "errors",
    "paths",
    "system",
    "error_translation",
    "cli",
    "scenario",
    "jobs",
    "recording",
    "results",
    "cost",
    "thrift",
    "clocks",
    "run",
    "metrics",
    "ranks",
    "sweeps",
    "report",
    "goodput",
    "trials",
    "bench",
    "drills",
    "scheduling",
    "papers",
    "live",
    "workbench",
    "calibration",
    "labs",
    "pytest_plugin",
    "exercises",
    "doctor",
    "p4utils",
    "shims",
    "commands",
    "torch",
]
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
    return {".".join(name.split(".")[:2]) for name in found if name.split(".")[0] in ("weft", "fuzz")} - {"weft"}


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_it_may(package: str) -> None:
    assert wrong_imports(package, ALLOWED[package]) == {}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_from_those_below(layer: str) -> None:
    assert wrong_imports(layer, ALLOWED.keys() | {*LAYERS[: LAYERS.index(layer)]}) == {}


def test_every_package_and_module_has_its_place() -> None:
    names = {path.stem for path in (ROOT / "weft").glob("*.py")} - {"__init__", "__main__"}
    names |= {path.parent.name for path in (ROOT / "weft").glob("*/__init__.py")}
    assert names == {*ALLOWED, *LAYERS}


def wrong_imports(package: str, allowed: Iterable[str]) -> dict[str, list[str]]:
    """Return which files of a package, or which module, import more than they may, and what."""
    files = sorted((ROOT / "weft" / package).rglob("*.py")) or [ROOT / "weft" / f"{package}.py"]
    names = {f"weft.{each}" for each in (*allowed, package)}
    return {str(path.relative_to(ROOT)): sorted(extra) for path in files if (extra := imported(path) - names)}


def test_a_process_of_a_host_starts_without_pydantic() -> None:
    """A lab starts one for each host (docs/design/hosts.md, "Endpoints")."""
    program = "import sys, weft.traffic.endpoint; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_dir_lists_the_public_names_before_any_is_imported() -> None:
    program = "import sys, weft; print(*dir(weft)); sys.exit('weft.run' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(weft.__all__)
    assert [name for name in dir(weft) if not hasattr(weft, name)] == []


def test_weft_does_not_import_its_fuzzer() -> None:
    wrong = [str(path) for path in (ROOT / "weft").rglob("*.py") if any("fuzz" in name for name in imported(path))]
    assert wrong == []


def test_folders_at_the_top_are_those_of_the_package() -> None:
    for name in VISIBLE_AT_THE_TOP:
        assert (ROOT / name).resolve() == ROOT / "weft" / name


def test_the_p4_folder_is_no_python_package() -> None:
    """The p4runtime distribution owns the Python name p4."""
    assert not (ROOT / "p4" / "__init__.py").exists()


@pytest.mark.parametrize("check", sorted(ROOT.glob("labs/*/check.py")), ids=lambda path: path.parent.name)
def test_an_exercise_needs_no_more_than_weft(check: Path) -> None:
    """`weft check` works wherever Weft alone is installed."""
    modules = set()
    for node in ast.walk(ast.parse(check.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    assert {name.partition(".")[0] for name in modules} <= {*sys.stdlib_module_names, "weft", "numpy"}

"""`make test-changed` runs the tests that a change can reach (tests/reached.py), in trees made here and in this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.reached import Graph, changed_since, python_files, reached
from weft.paths import ROOT

TREE = {
    "weft/__init__.py": "from weft.errors import E\n_LATE = {'Fabric': 'weft.run.fabric', 'sweep': 'weft.sweeps'}\n"
    "def __getattr__(name): return import_module(_LATE[name])",
    "weft/__main__.py": "from weft.cli import main",
    "weft/cli.py": "COMMANDS = {'run': ('weft.commands.run', 'run')}\ndef get(name): import_module(COMMANDS[name][0])",
    "weft/errors.py": "class E(Exception): pass",
    "weft/paths.py": "P4 = folder('p4')\nFABRIC = P4 / 'fabric.p4'\nLABS = folder('labs')",
    "weft/commands/__init__.py": "",
    "weft/commands/run.py": "def run():\n    from weft.run import fabric",
    "weft/run/__init__.py": "",
    "weft/run/fabric.py": "from .. import kinds\nfrom weft.paths import FABRIC\n"
    "if TYPE_CHECKING:\n    from weft import report",
    "weft/sweeps.py": "",
    "weft/report.py": "'''Shows docs/page.md.'''\nprint('see docs/page.md')",
    "weft/kinds/__init__.py": "from weft.registry import Registry\nKINDS = Registry(__name__)",
    "weft/kinds/torus.py": "",
    "weft/registry.py": "def modules(package): import_module(package)",
    "weft/templates.py": "FILES = PACKAGE / 'project'",
    "benchmarks/bench_a.py": "",
    "tests/conftest.py": "",
    "tests/a/conftest.py": "import helper",
    "tests/a/helper.py": "",
    "tests/a/test_conftest.py": "",
    "tests/b/test_command.py": "run([sys.executable, '-m', 'weft', 'run'])",
    "tests/b/test_script.py": "run('.venv/bin/weft run labs/x.yaml')",
    "tests/b/test_errors.py": "from weft.errors import E",
    "tests/b/test_late.py": "from weft import Fabric",
    "tests/b/test_attribute.py": "import weft\nweft.Fabric()",
    "tests/b/test_kinds.py": "from weft.kinds import KINDS",
    "tests/b/test_report.py": "from weft import report",
    "tests/b/test_labs.py": "from weft.paths import LABS",
    "tests/b/test_pages.py": "PAGES = ROOT.glob('*.md'), ROOT / 'docs'",
    "tests/b/test_programs.py": "HERE / 'programs'",
    "tests/b/test_benchmarks.py": "(ROOT / 'benchmarks').glob('bench_*.py')",
    "tests/b/test_templates.py": "import weft.templates",
}
OF_RUN = ["attribute", "command", "late", "script"]


def names_of(changed: str) -> list[str]:
    found = reached(Graph(TREE), [changed])
    assert found.everything is None
    return [Path(path).stem.removeprefix("test_") for path in found.chains]


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ("weft/run/fabric.py", OF_RUN),
        ("weft/commands/run.py", ["command", "script"]),
        ("weft/sweeps.py", ["attribute"]),
        ("weft/kinds/torus.py", ["attribute", "command", "kinds", "late", "script"]),
        ("weft/report.py", ["report"]),
        ("tests/a/helper.py", ["conftest"]),
        ("tests/a/conftest.py", ["conftest"]),
        ("tests/b/test_errors.py", ["errors"]),
        ("benchmarks/bench_a.py", ["benchmarks"]),
        ("labs/x.yaml", ["labs", "script"]),
        ("p4/fabric.p4", OF_RUN),
        ("README.md", ["pages"]),
        ("docs/page.md", ["pages"]),
        ("weft/project/page.html", ["templates"]),
        ("tests/a/programs/x.p4", ["conftest", "programs"]),
    ],
)
def test_a_change_reaches_the_tests_that_import_run_or_read_it(changed: str, names: list[str]) -> None:
    assert names_of(changed) == names


def test_all_that_is_imported_on_the_way_counts() -> None:
    """The package `weft` runs its own imports for all its modules' tests, but not those that it makes on demand."""
    assert {"errors", "kinds", "report", "labs", "templates"} < set(names_of("weft/errors.py"))
    assert "errors" not in names_of("weft/run/fabric.py")


@pytest.mark.parametrize("changed", ["engine/a.cpp", "pyproject.toml", "tests/conftest.py", "unknown/x", "weft.ini"])
def test_what_the_graph_does_not_know_reaches_everything(changed: str) -> None:
    found = reached(Graph(TREE), ["weft/sweeps.py", changed])
    assert found.everything is not None
    assert found.everything.startswith(changed)


def test_the_way_to_a_test_is_told() -> None:
    chains = reached(Graph(TREE), ["weft/kinds/torus.py", "tests/b/test_errors.py"]).chains
    assert chains["tests/b/test_late.py"] == (
        "weft/kinds/torus.py",
        "weft/run/fabric.py",
        "tests/b/test_late.py",
    )
    assert chains["tests/b/test_errors.py"] == ("tests/b/test_errors.py",)


def test_a_file_that_is_no_python_is_no_obstacle() -> None:
    graph = Graph(TREE | {"tests/a/bad.py": "def:"})
    assert list(reached(graph, ["weft/report.py"]).chains) == ["tests/b/test_report.py"]


LOADED = ["weft.run.fabric", "weft.compiler.driver", "weft.topologies", "fuzz.packets"]


@pytest.fixture(scope="module")
def own() -> Graph:
    """This tree, with a test for each of some modules."""
    return Graph(python_files() | {path_of_test(each): f"import {each}" for each in LOADED})


def path_of_test(module: str) -> str:
    return f"tests/weft/test_of_{module.replace('.', '_')}.py"


@pytest.mark.parametrize("module", LOADED)
def test_no_module_that_python_loads_is_missing(own: Graph, module: str) -> None:
    script = f"import {module}, sys\nprint(*(getattr(each, '__file__', '') for each in sys.modules.values()))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [Path(each) for each in done.stdout.split()]
    loaded = {str(each.relative_to(ROOT)) for each in files if each.is_relative_to(ROOT)} & own.sources.keys()
    assert len(loaded) > 10
    found = {path: reached(own, [path]) for path in loaded}
    assert [
        path for path in found if not found[path].everything and path_of_test(module) not in found[path].chains
    ] == []


def test_the_change_is_since_the_branch_began_and_what_is_not_committed(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *names, *arguments], cwd=tmp_path, check=True)

    def commit(name: str) -> None:
        (tmp_path / name).write_text(f"/{name}", encoding="utf-8")
        git("add", "--all")
        git("commit", "--quiet", "--message", name)

    git("init", "--quiet", "--initial-branch", "main")
    commit("old")
    commit("deleted")
    commit("kept")
    git("checkout", "--quiet", "-b", "mine")
    commit("committed")
    git("checkout", "--quiet", "main")
    commit("on main since")
    git("checkout", "--quiet", "mine")
    (tmp_path / "old").write_text("changed", encoding="utf-8")
    (tmp_path / "deleted").unlink()
    (tmp_path / "untracked").touch()
    assert changed_since("main", tmp_path) == ["committed", "deleted", "old", "untracked"]
    with pytest.raises(SystemExit, match="git merge-base none HEAD: "):
        changed_since("none", tmp_path)

"""`weft new`: a folder whose test passes, and the page that shows it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.cli import run_guarded, weft
from weft.errors import BadInputError
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.scenario.parsing import Change

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own-program.md").read_text(encoding="utf-8")
TEMPLATES = ROOT / "weft" / "templates" / "project"


def command(*arguments: object) -> int:
    return run_guarded(lambda: weft.main([*map(str, arguments)], standalone_mode=False))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert command("new", "my-switch") == 0
    return tmp_path / "my-switch"


def test_the_test_of_a_new_project_passes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert capsys.readouterr().out in PAGE
    assert "NAME" not in (project / "README.md").read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_the_program_compiles_without_a_warning(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("compile", project / "program.p4", "-o", project / "program.json") == 0
    assert not capsys.readouterr().err


def test_the_page_shows_what_a_run_says(project: Path) -> None:
    said: list[str] = []
    result = run_scenario(load_scenario(project / "scenario.yaml"), progress=said.append)
    # With code in the cache, as on the page.
    said = [line for line in said if not line.startswith("making machine code")]
    assert "".join(f"· {line}\n" for line in said[:5]) in PAGE
    assert result.counters


@pytest.mark.reference
def test_the_reference_compiler_makes_the_same_of_the_modules(project: Path) -> None:
    """The program includes `<weft/…>`, which p4c has to find, too."""
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("needs p4c-bm2-ss on PATH")
    ours, reference = (
        run_scenario(load_scenario(project / "scenario.yaml", [Change("compiler", compiler, "")]))
        for compiler in ("embedded", "p4c")
    )
    assert reference.counters
    assert reference.counters == ours.counters
    assert reference.traffic == ours.traffic


def test_the_page_shows_the_errors_of_a_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = project / "scenario.yaml"
    text = scenario.read_text(encoding="utf-8")
    scenario.write_text(text.replace("\n\nfabric:", "\nint: true\n\nfabric:"), encoding="utf-8")
    monkeypatch.chdir(project)
    for change in ("int", "entry"):
        if change == "entry":
            scenario.write_text(text, encoding="utf-8")
            leaf = project / "leaf.yaml"
            leaf.write_text(leaf.read_text().replace("remove_tenant}\n", "remove_tenants}\n"), encoding="utf-8")
        with pytest.raises(BadInputError) as raised:
            run_scenario(load_scenario(Path("scenario.yaml")))
        assert f"\n{raised.value}\n" in PAGE


def test_program_and_controller_of_the_page_are_the_project_s() -> None:
    for name in ("program.p4", "controller.py"):
        assert (TEMPLATES / name).read_text(encoding="utf-8") in PAGE


def test_every_module_on_the_page_is_there() -> None:
    parts = {"lanes.p4", "icrc.p4", "load_balancing.p4"}  # of other modules
    modules = {each.name for each in (ROOT / "p4" / "include").glob("*.p4")} - parts
    assert all(f"`{name}`" in PAGE for name in modules)


@pytest.mark.parametrize("name", ["My_Switch", "-x", "a" * 42, "none/x"])
def test_what_is_no_name_or_place_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("new", "--", name) == 3
    assert "is no name of a project" in capsys.readouterr().err or name == "none/x"


def test_a_folder_that_is_there_is_left_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("new", "my-switch") == 3
    assert "my-switch: is there already" in capsys.readouterr().err

"""`weft doctor`: each check finds its capability or says what is missing, hangs nowhere and changes nothing."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from weft import doctor
from weft.cache import unusable_because
from weft.cli import weft
from weft.clocks import environment
from weft.doctor import CAPABILITIES, Capability, Finding, examine
from weft.doctor.capabilities import core, labs, machine, programs, python_packages
from weft.doctor.capability import modules, program, required_by
from weft.errors import EnvironmentLacksError
from weft.paths import DOCS_DIRECTORY, ROOT

GIB = 2**30
EVERY_MODULE = (core, labs, machine, programs, python_packages)


def capability(name: str, finding: Finding | Exception, is_essential: bool = False) -> Capability:
    def look() -> Finding:
        if isinstance(finding, Exception):
            raise finding
        return finding

    return Capability(name, f"purpose of {name}", look, f"cost of {name}", f"install {name}", is_essential)


def test_every_capability_is_registered_once_and_described() -> None:
    declared = [each for module in EVERY_MODULE for each in module.CAPABILITIES]
    assert [each.name for each in declared] == list(CAPABILITIES)
    for each in declared:
        assert each.purpose, each.name
        assert each.cost, each.name
        assert each.remedy, each.name
    assert [each.name for each in declared if each.is_essential] == ["engine", "machine code"]


def test_the_optional_packages_are_the_extras_of_users() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = set(parser["options.extras_require"]) - {"test", "dev"}
    assert {each.name for each in python_packages.CAPABILITIES} == {f"extra {name}" for name in extras}


def test_the_engine_and_machine_code_work_here() -> None:
    found = {each.capability.name: each for each in examine(core.CAPABILITIES)}
    assert not found["engine"].prevents_runs, found["engine"].finding
    assert not found["machine code"].prevents_runs, found["machine code"].finding


def test_a_check_that_never_ends_is_missing_and_delays_no_other() -> None:
    released = threading.Event()

    def hang() -> Finding:
        released.wait()
        return Finding(True, "")

    stuck = Capability("stuck", "p", hang, "c", "i", is_essential=True)
    (found,) = examine([stuck], deadline_s=0)
    assert found.prevents_runs
    assert found.finding == Finding(False, "no answer within 0 s")
    released.set()


def test_a_check_that_fails_is_missing_for_that_reason() -> None:
    (found,) = examine([capability("broken", OSError("no /proc"))])
    assert found.finding == Finding(False, "OSError: no /proc")


def test_findings_are_in_the_order_of_the_capabilities() -> None:
    names = [f"c{number}" for number in range(20)]
    found = examine([capability(name, Finding(True, name)) for name in names])
    assert [each.finding.detail for each in found] == names


@pytest.mark.parametrize(
    ("present", "is_essential", "code"), [(True, True, 0), (False, False, 0), (True, False, 0), (False, True, 4)]
)
def test_only_a_missing_essential_changes_the_exit_code(
    present: bool, is_essential: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = capability("one", Finding(present, "found here"), is_essential)
    monkeypatch.setattr(doctor, "CAPABILITIES", {"one": one})
    # Outside click's standalone mode a command's result is the exit code (weft.cli.run_guarded).
    result = CliRunner().invoke(weft, ["doctor"], standalone_mode=False)
    assert result.return_value == code
    (line,) = (line for line in result.output.splitlines() if line.startswith("one "))
    assert line.split()[1] == ("OK" if present else "missing")
    assert ("found here" if present else "cost of one") in line
    assert ("install one" in result.output) is not present


def test_json_has_every_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CAPABILITIES", {"one": capability("one", Finding(False, "not there"))})
    result = CliRunner().invoke(weft, ["doctor", "--json"], standalone_mode=False)
    assert json.loads(result.output) == {
        "runs": True,
        "capabilities": [
            {
                "name": "one",
                "purpose": "purpose of one",
                "present": False,
                "detail": "not there",
                "essential": False,
                "cost": "cost of one",
                "install": "install one",
            }
        ],
    }


@pytest.mark.parametrize("terminal", [False, True])
def test_paths_are_never_cut(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/{'long' * 80}"
    monkeypatch.setattr(doctor, "CAPABILITIES", {"one": capability("one", Finding(True, path))})
    environment = {"FORCE_COLOR": "1", "COLUMNS": "60"} if terminal else {"FORCE_COLOR": None, "COLUMNS": "60"}
    output = CliRunner().invoke(weft, ["doctor"], standalone_mode=False, env=environment).output
    assert path in (re.sub(r"\s", "", output) if terminal else output)


def test_nothing_is_changed(tmp_path: Path) -> None:
    environment = os.environ | {
        "HOME": str(tmp_path),
        "WEFT_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "weft", "doctor", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["capabilities"]) == len(CAPABILITIES)
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_the_engine_gets_a_table() -> None:
    """The command itself needs no more than Python and the packages that print."""
    program = (
        "import sys; sys.modules['weft.engine'] = None;"
        "from weft.doctor.capabilities import core;"
        "core._ENGINE = 'import weft.no_engine';"
        "from weft.cli import main; main(['doctor'])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert re.search(r"^engine +missing ", done.stdout, re.MULTILINE)
    assert re.search(r"^machine code +OK ", done.stdout, re.MULTILINE)
    assert "engine: ModuleNotFoundError" in done.stdout


def test_a_child_that_crashes_is_missing() -> None:
    assert core._printed("import os; os.abort()") == Finding(False, "the process ended with status -6")


def test_programs_are_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program("first", "second")() == Finding(False, "not on PATH: first, second")
    (tmp_path / "second").write_text("")
    (tmp_path / "second").chmod(0o755)
    assert program("first", "second")() == Finding(True, str(tmp_path / "second"))


def test_modules_are_found_without_importing_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raising_module.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert modules("raising_module")().present
    assert modules("json", "no_such_module")() == Finding(False, "no module no_such_module")


def test_what_a_run_requires_is_what_the_doctor_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "missing_capabilities", lambda: ["NET_ADMIN"])
    finding = labs._namespaces()
    with pytest.raises(EnvironmentLacksError) as refused:
        environment.require_rights()
    assert finding == Finding(False, str(refused.value))
    assert required_by(lambda: None, "there") == Finding(True, "there")


def test_mnexec_that_hangs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: list[str], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(environment, "missing_capabilities", lambda: [])
    monkeypatch.setattr(subprocess, "run", hang)
    assert "none after 20 s" in labs._namespaces().detail


def test_a_cache_folder_is_usable_if_it_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b"
    monkeypatch.setenv("WEFT_CACHE_DIR", str(folder))
    assert unusable_because() is None
    assert not folder.exists()
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert unusable_because() == f"{folder} belongs to another user, or others may write it"
    monkeypatch.setenv("WEFT_CACHE_DIR", "")
    assert "turns caching off" in str(unusable_because())
    (tmp_path / "file").touch()
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert unusable_because() == f"{tmp_path / 'file'} is not a directory"


@pytest.mark.parametrize(
    ("gib", "present", "said"),
    [(0.5, False, "fabrics of 1,024 endpoints need 1 GiB"), (2, False, "1,024"), (5, True, "16,384")],
)
def test_memory_says_which_fabrics_fit(gib: float, present: bool, said: str) -> None:
    finding = machine.memory_finding(int(gib * GIB))
    assert finding.present is present
    assert said in finding.detail


def test_sizes_of_fabrics_are_those_measured() -> None:
    page = (DOCS_DIRECTORY / "performance.md").read_text(encoding="utf-8")
    section = page.partition("## Set-up and 16,384 endpoints")[2].partition("\n## ")[0]
    for size in machine.FABRICS:
        found = re.search(rf"^\| {size.endpoints} endpoints.*: peak memory \| ([\d.]+) GiB", section, re.MULTILINE)
        assert found, size
        assert float(found[1]) < size.gib < float(found[1]) + 1


@pytest.mark.parametrize(("limit", "gib"), [(None, 8), ("max", 8), (str(3 * GIB), 3), (str(64 * GIB), 8)])
def test_memory_is_that_of_the_container(limit: str | None, gib: int, tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal: {8 * GIB // 1024} kB\n")
    if limit is not None:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
    assert machine.memory_bytes(tmp_path, tmp_path) == gib * GIB


@pytest.mark.parametrize(("text", "present"), [("always [madvise] never", True), ("always madvise [never]", False)])
def test_huge_pages_are_there_unless_the_kernel_gives_none(text: str, present: bool, tmp_path: Path) -> None:
    setting = tmp_path / "enabled"
    setting.write_text(text)
    assert machine._huge_pages(setting).present is present
    assert not machine._huge_pages(tmp_path / "none").present

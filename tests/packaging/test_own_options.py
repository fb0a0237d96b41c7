"""The options of this test suite's own: `--part` and `--cpu-times`, in a pytest process on tests made here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import parts
import pytest

from weft.paths import ROOT

CONFTEST = """
import parts
import processor_time

def pytest_addoption(parser):
    parts.add_option(parser)
    processor_time.add_option(parser)

def pytest_configure(config):
    for each in (*parts.LONG, parts.IN_EVERY_PART, parts.IN_ONE_PART):
        config.addinivalue_line("markers", each)
    parts.register(config)
    processor_time.register(config)
"""
TESTS = """
import pytest

@pytest.mark.parametrize("number", range(7))
@pytest.mark.slow
def test_slow(number): pass

@pytest.mark.parametrize("number", range(3))
@pytest.mark.mininet
def test_lab(number): pass

@pytest.mark.mininet
@pytest.mark.every_part
def test_needed(): pass

def test_fast(): pass
"""
WORKING = """
import subprocess
import sys
import time

WORK = "import time\\nwhile time.process_time() < {}: pass"

def test_works():
    began = time.process_time()
    while time.process_time() < began + 0.2: pass

def test_has_a_child_work():
    subprocess.run([sys.executable, "-c", WORK.format(0.3)], check=True)

def test_waits():
    subprocess.run([sys.executable, "-c", "pass"], check=True)
"""


def pytest_on(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_some.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )


def collected(folder: Path, *arguments: str) -> list[str]:
    done = pytest_on(folder, TESTS, "--collect-only", "-q", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_the_parts_are_all_long_tests_and_have_none_in_common(tmp_path: Path) -> None:
    everything = collected(tmp_path)
    assert len(everything) == 12
    found = [collected(tmp_path, f"--part={number}/3") for number in (1, 2, 3)]
    assert [len(each) for each in found] == [4 + 2, 3 + 2, 3 + 2]
    for each in found:
        assert each[-2:] == ["test_needed", "test_fast"]
        assert [name for name in everything if name in each] == each
    assert sorted(name for each in found for name in each[:-2]) == sorted(everything[:-2])
    # Neighbours are in different parts: the fixtures and times of a module spread over all of them.
    assert found[0][:3] == ["test_slow[0]", "test_slow[3]", "test_slow[6]"]


def test_tests_of_one_part_stay_together(tmp_path: Path) -> None:
    together = "import pytest\npytestmark = [pytest.mark.slow, pytest.mark.one_part]\n" + "".join(
        f"def test_{number}(): pass\n" for number in range(3)
    )
    (tmp_path / "test_apart.py").write_text("import pytest\n@pytest.mark.slow\ndef test_other(): pass\n")
    (tmp_path / "test_shared.py").write_text(together)
    found = [collected(tmp_path, "-k", "test_shared or test_apart", f"--part={number}/2") for number in (1, 2)]
    assert found == [["test_other"], ["test_0", "test_1", "test_2"]]


def test_a_part_is_one_of_what_marks_and_words_leave(tmp_path: Path) -> None:
    assert collected(tmp_path, "-m", "mininet", "--part=2/3") == ["test_lab[1]", "test_needed"]
    assert collected(tmp_path, "-k", "slow", "--part=3/3") == ["test_slow[2]", "test_slow[5]"]


def test_workers_run_the_part_of_the_commit(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "one"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True)
    part = int(done.stdout, 16) % 3 + 1
    run = pytest_on(tmp_path, TESTS, "-n", "2", "--rootdir", str(tmp_path), "--part=commit/3")
    assert f"long tests: --part={part}/3; make test-all runs all parts" in run.stdout
    assert f"{6 if part == 1 else 5} passed" in run.stdout


def test_without_git_it_is_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert parts.part_of("commit/8", tmp_path) == (1, 8)


@pytest.mark.parametrize("text", ["", "1", "1/0", "0/8", "9/8", "/8", "commit", "commit/x", "head/8", "1/2/3"])
def test_another_part_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(pytest.UsageError, match=r"valid: 1/8 to 8/8, say, or commit/8"):
        parts.part_of(text, tmp_path)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_tests_processor_time_has_its_childrens(tmp_path: Path, workers: str) -> None:
    done = pytest_on(tmp_path, WORKING, "-n", workers, f"--cpu-times={tmp_path}/times")
    assert done.returncode == 0, done.stdout
    head, *lines = (tmp_path / "times").read_text(encoding="utf-8").splitlines()
    assert head == "processor_s\twall_s\ttest"
    rows = {test: (float(processor), float(wall)) for processor, wall, test in map(str.split, lines)}
    assert set(rows) == {f"test_some.py::test_{name}" for name in ("works", "has_a_child_work", "waits")}
    assert rows["test_some.py::test_works"][0] >= 0.19
    assert rows["test_some.py::test_has_a_child_work"][0] >= 0.29

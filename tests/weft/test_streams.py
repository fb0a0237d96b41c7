"""`weft` with standard streams that are closed or of ASCII: nothing fails, and nothing is printed into a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """
clock: virtual
fabric: {leaves: 1, spines: 1, hosts_per_leaf: 2}
traffic: [{collective: allreduce, sizes: [1KiB]}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def run_weft(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which $WEFT is the command."""
    weft = f"{sys.executable} -c 'from weft.cli import main; main()'"
    return subprocess.run(
        ["sh", "-c", f'weft() {{ {weft} "$@"; }}; {command}'],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_ends_no_run(closed: str, scenario: Path, tmp_path: Path) -> None:
    done = run_weft(f"weft run {scenario} --out out {closed}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    results = (tmp_path / "out/results.json").read_text(encoding="utf-8")
    assert results.startswith("{")
    assert results.endswith("}\n")


def test_ascii_output_prints_what_it_can(scenario: Path, tmp_path: Path) -> None:
    done = run_weft(f"weft run {scenario}", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "all-reduce" in done.stdout
    assert "?s" in done.stdout  # µs


def test_a_second_run_into_a_folder_says_that_it_replaces_results(scenario: Path, tmp_path: Path) -> None:
    assert "another run" not in run_weft(f"weft run {scenario} --out out", tmp_path).stderr
    assert "another run" in run_weft(f"weft run {scenario} --out out --set seed=2", tmp_path).stderr

"""`mpirun -n N weft run`: the files of one process, and an end of all whatever ends one."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

WEFT = [sys.executable, "-m", "weft"]
TIMEOUT_S = 100
SCENARIO = """
name: several
clock: virtual
fabric: {leaves: 2, spines: 2, hosts_per_leaf: 2, planes: 1, host_rate: 100Gb/s}
transport: {congestion_control: "mine.py:Mine"}
traffic: [{collective: allreduce, sizes: [64K], algorithms: [ring, in-network], data: random}]
"""
MINE = """
import os, signal
import weft

class Mine(weft.CongestionControl):
    def window_bytes(self):
        return 20000

    def on_acknowledgement(self, event):
        if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
            {end}
"""

pytestmark = [
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is missing (the package openmpi-bin)"),
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None, reason="mpi4py is missing (python3-mpi4py)"
    ),
]


def mpirun(processes: int, command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command in so many processes on this machine."""
    options = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-n", str(processes)]
    return subprocess.run(
        ["mpirun", *options, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "PRTE_ALLOW_RUN_AS_ROOT": "1"},
    )


def scenario(folder: Path, end: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    (folder / "mine.py").write_text(MINE.format(end=end), encoding="utf-8")
    return path


def files_in(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != "wall_times.json"}


@pytest.mark.slow
def test_processes_of_mpirun_write_what_one_writes(tmp_path):
    path = scenario(tmp_path, "pass")
    for count in (1, 2, 4):
        ran = mpirun(count, [*WEFT, "run", str(path), "--out", str(tmp_path / str(count))], tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.count("packet conservation") == 1  # one process speaks
        assert files_in(tmp_path / str(count)) == files_in(tmp_path / "1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("raise RuntimeError('enough')", 3, "enough"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "signal 9"),
    ],
)
def test_what_ends_one_process_ends_all(tmp_path, end, code, said):
    path = scenario(tmp_path, end)
    ran = mpirun(2, [*WEFT, "run", str(path), "--out", str(tmp_path / "out")], tmp_path)
    assert ran.returncode == code
    assert said in ran.stdout + ran.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.slow
def test_processes_of_different_scenarios_are_refused(tmp_path):
    path = scenario(tmp_path, "pass")
    command = f'{" ".join(WEFT)} run {path} --seed "$OMPI_COMM_WORLD_RANK" --out {tmp_path}/out'
    ran = mpirun(2, ["sh", "-c", command], tmp_path)
    assert ran.returncode == 4
    assert "differ in: scenario" in ran.stdout + ran.stderr


def test_commands_of_one_process_are_refused_under_mpirun(tmp_path):
    path = scenario(tmp_path, "pass")
    ran = subprocess.run(
        [*WEFT, "collective", "allreduce", str(path)],
        env={**os.environ, "OMPI_COMM_WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == 3
    assert "weft collective: mpirun started 2 processes" in ran.stderr

"""`mpirun -n N weft run`: the files of one process, and an end of all whatever ends one."""

import importlib.util
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.clocks.virtual.mpi import processes_here
from weft.clocks.virtual.processes import ALONE
from weft.errors import CheckFailedError, EnvironmentLacksError
from weft.paths import ROOT
from weft.system.mpirun import require_known_launcher

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
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is missing (python3-mpi4py)"),
]


def environment() -> dict[str, str]:
    # Processes that wait leave the cores to other tests.
    return {**os.environ, "PRTE_ALLOW_RUN_AS_ROOT": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


def mpirun_command(processes: int, command: Sequence[str]) -> list[str]:
    options = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-n", str(processes)]
    return ["mpirun", *options, *command]


def mpirun(processes: int, command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command in so many processes on this machine."""
    return subprocess.run(
        mpirun_command(processes, command),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=environment(),
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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_all_without_results(tmp_path, number):
    path = scenario(tmp_path, "print('process', os.getpid(), flush=True); signal.pause()")
    command = mpirun_command(2, [*WEFT, "run", str(path), "--out", str(tmp_path / "out")])
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as running:
        assert running.stdout is not None
        process_id = next(int(line.split()[1]) for line in running.stdout if line.startswith("process "))
        process = os.pidfd_open(process_id)
        running.send_signal(number)
        running.communicate(timeout=TIMEOUT_S)
    assert running.returncode != 0
    # mpirun does not wait for those that it ends.
    has_ended, _, _ = select.select([process], [], [], TIMEOUT_S)
    os.close(process)
    assert has_ended
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.slow
def test_processes_of_different_scenarios_are_refused(tmp_path):
    path = scenario(tmp_path, "pass")
    command = f'{" ".join(WEFT)} run {path} --seed "$OMPI_COMM_WORLD_RANK" --out {tmp_path}/out'
    ran = mpirun(2, ["sh", "-c", command], tmp_path)
    assert ran.returncode == 4
    assert "differ in: scenario" in ran.stdout + ran.stderr


# What processes do with each other, without a fabric; `closing` stands for the virtual time that closing one takes.
BESIDE = """
import os, signal, sys
from mpi4py import MPI
from weft.clocks.virtual import mpi
from weft.commands.several_processes import run_by_all
from weft.errors import CheckFailedError

mpi._LEAVING_S = float(os.environ.get("LEAVING_S", 10))
processes = mpi.MpiProcesses(MPI, piece_bytes=8)

def closing():
    for _ in range(3):
        processes.exchange([b"", b""])

def command():
    try:
        {body}
    finally:
        closing()
    return 0

sys.exit(run_by_all(processes, command))
"""


def run_beside(folder: Path, body: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    path = folder / "beside.py"
    path.write_text(BESIDE.format(body=body), encoding="utf-8")
    assignments = [f"{name}={value}" for name, value in environment.items()]
    return mpirun(2, ["env", f"PYTHONPATH={ROOT}", *assignments, sys.executable, str(path)], folder)


def test_long_messages_travel_in_pieces(tmp_path):
    lengths = "for n in range(40): assert processes.of(n % 2, 'bytes', lambda: b'x' * n) == b'x' * n"
    ran = run_beside(tmp_path, lengths)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("processes.of(1, 'what cannot be sent', lambda: lambda: 0)", 1, "process 1 of 2: "),
        ("processes.of(1, 'what fails', lambda: 1 // 0)", 1, "process 1 of 2: ZeroDivisionError"),
        ("processes.of(0, 'what fails', lambda: 1 // 0)", 1, "weft: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_given_ends_all(tmp_path, body, code, said):
    ran = run_beside(tmp_path, body)
    assert ran.returncode == code
    assert said in ran.stderr


def test_a_process_that_waits_for_one_that_hangs_says_why_it_ends_all(tmp_path):
    body = """
        if processes.number == 0:
            signal.pause()
        processes.of(1, "what fails", lambda: (_ for _ in ()).throw(CheckFailedError("enough")))
    """
    ran = run_beside(tmp_path, body.strip(), LEAVING_S="0.1")
    assert ran.returncode == CheckFailedError.exit_code
    assert "weft: process 1 of 2: enough" in ran.stderr


@pytest.mark.parametrize("variables", [{"SLURM_STEP_NUM_TASKS": "2"}, {"PMIX_RANK": "0"}])
def test_tasks_that_know_nothing_of_each_other_are_refused(monkeypatch, variables):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    require_known_launcher()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with refused(
        EnvironmentLacksError, valid="mpirun -n N weft run within the allocation, or srun -n 1", problem="run"
    ):
        processes_here()
    for name in ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"):
        with monkeypatch.context() as one:
            one.setenv(name, "1")
            assert processes_here() is ALONE


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

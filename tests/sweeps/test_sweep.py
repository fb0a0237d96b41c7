import csv
import json
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from distributed import LocalCluster

import weft
from tests.refusals import refused
from weft.errors import BadInputError, EnvironmentLacksError
from weft.paths import ROOT
from weft.sweeps import State, execution, worker

LOSSY = {"faults.loss": [0, 0.95]}


def read(table):
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_table_is_the_same_for_any_number_of_workers(small, tmp_path):
    grid = {"fabric.hosts_per_leaf": [3, 4, 5]}
    one = weft.sweep(small, tmp_path / "one", grid=grid, workers=1)
    three = weft.sweep(small, tmp_path / "three", grid=grid, workers=3)
    assert one.ok
    assert one.table.read_bytes() == three.table.read_bytes()
    for point in one.points:
        results = [(each.directory_of(point) / "results.json").read_bytes() for each in (one, three)]
        assert results[0] == results[1]
    rows = read(one.table)
    assert [row["fabric.hosts_per_leaf"] for row in rows] == ["3", "4", "5"]
    assert [int(row["bytes_delivered"]) for row in rows] == [16384, 24576, 32768]
    assert len({row["time_ps"] for row in rows}) == 3
    assert {row["state"] for row in rows} == {"finished"}


def test_a_point_s_scenario_runs_by_itself(small, tmp_path):
    result = weft.sweep(small, tmp_path / "out", grid={"seed": [3]})
    directory = result.directory_of(result.points[0])
    command = [
        sys.executable,
        "-m",
        "weft",
        "run",
        str(directory / "scenario.yaml"),
        "--out",
        str(tmp_path / "again"),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / "again" / "results.json").read_bytes() == (directory / "results.json").read_bytes()


@pytest.mark.slow
def test_a_failed_point_stops_no_other_and_is_tried_again_only_if_asked(small, tmp_path, recorder):
    result = weft.sweep(small, tmp_path / "out", grid=LOSSY, workers=2)
    assert not result.ok
    assert [outcome.state for outcome in result.outcomes] == [State.FINISHED, State.FAILED]
    ((point, error),) = result.failed()
    assert point.parameters == {"faults.loss": 0.95}
    assert "retr" in error
    rows = read(result.table)
    assert [row["state"] for row in rows] == ["finished", "failed"]
    assert rows[1]["error"] == error
    weft.sweep(small, tmp_path / "out", grid=LOSSY, progress=recorder)
    assert recorder.left == 0
    weft.sweep(small, tmp_path / "out", grid=LOSSY, progress=recorder, retry_failed=True)
    assert recorder.labels == ["faults.loss=0.95"]


@pytest.mark.slow
def test_more_values_run_only_what_is_new(small, tmp_path, recorder):
    weft.sweep(small, tmp_path / "out", grid={"seed": [1]})
    result = weft.sweep(small, tmp_path / "out", grid={"seed": [1, 2]}, progress=recorder)
    assert recorder.labels == ["seed=2"]
    assert len(read(result.table)) == 2


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on_where_it_was(small, tmp_path, recorder):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "weft", "sweep", str(small), "--grid", "seed=1..4", "--workers", "1"]
    process = subprocess.Popen(
        [*command, "--out", str(out)], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not list(out.glob("points/*/outcome.json")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "goes on with what is left" in errors
    assert [line for line in errors.splitlines() if line and not line.startswith("· ")] == ["weft: interrupted"]
    finished = sorted(path.name for path in out.glob("points/*"))
    assert 1 <= len(finished) < 4
    assert not any(name.endswith(".running") for name in finished)
    states = [row["state"] for row in read(out / "table.csv")]
    assert states.count("finished") == len(finished)
    assert states.count("not run") == 4 - len(finished)

    result = weft.sweep(small, out, grid={"seed": "1..4"}, progress=recorder)
    assert recorder.left == 4 - len(finished)
    whole = weft.sweep(small, tmp_path / "whole", grid={"seed": "1..4"})
    assert result.table.read_bytes() == whole.table.read_bytes()


@pytest.mark.slow
def test_a_run_that_is_killed_is_a_failed_point(small, tmp_path):
    def kill_the_first():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for process in (each for running in list(worker._running.values()) for each in list(running)):
                process.kill()
                return
            time.sleep(0.01)

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    result = weft.sweep(small, tmp_path / "out", grid={"seed": [1, 2]}, workers=1)
    killer.join()
    assert sorted(outcome.state for outcome in result.outcomes) == [State.FAILED, State.FINISHED]
    assert [error for _, error in result.failed()] == ["its process was ended by SIGKILL"]


def test_a_sweep_on_this_machine_listens_to_no_port(small, tmp_path, monkeypatch):
    def listen(self, *backlog):
        raise AssertionError(f"listens at {self.getsockname()}")

    monkeypatch.setattr(socket.socket, "listen", listen, raising=False)
    assert weft.sweep(small, tmp_path / "out", grid={"seed": [1, 2]}, workers=2).ok


@pytest.mark.slow
def test_a_cluster_runs_the_points(small, tmp_path):
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        result = weft.sweep(small, tmp_path / "out", grid={"seed": [1]}, scheduler=cluster.scheduler_address)
    assert result.ok


def test_a_cluster_that_is_not_there_is_reported(small, tmp_path, monkeypatch):
    monkeypatch.setattr(execution, "_CONNECT_S", 0.2)
    with refused(EnvironmentLacksError, problem="no Dask cluster with workers at"):
        weft.sweep(small, tmp_path / "out", scheduler="tcp://127.0.0.1:1")


def test_workers_are_ours_or_the_cluster_s(small, tmp_path):
    with refused(BadInputError, valid="1 or more", problem="0 workers"):
        weft.sweep(small, tmp_path / "out", workers=0)
    with refused(BadInputError, problem="has its own workers"):
        weft.sweep(small, tmp_path / "out", workers=2, scheduler="tcp://x:1")


@pytest.mark.slow
def test_a_directory_is_one_sweep_s_at_a_time(small, tmp_path):
    class Second:
        def begin(self, points, left):
            with pytest.raises(BadInputError, match="another sweep is writing there"):
                weft.sweep(small, tmp_path / "out")

        def done(self, point, outcome):
            pass

    assert weft.sweep(small, tmp_path / "out", progress=Second()).ok


@pytest.mark.slow
def test_the_command_prints_rows_and_failures(small, tmp_path):
    command = [sys.executable, "-m", "weft", "sweep", str(small), "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, "--grid", "faults.loss=0,0.95"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "failed: faults.loss=0.95: " in done.stdout
    assert "1 of 2 points finished" in done.stdout
    done = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [row["bytes_delivered"] for row in json.loads(done.stdout)] == [16384]
    done = subprocess.run([*command, "--grid", "fabric.spinez=1"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 3
    assert "did you mean 'spines'" in done.stderr

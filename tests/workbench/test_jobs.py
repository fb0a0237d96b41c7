"""Commands that the page starts: runs and the pages made of them, several at once, and their ends."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asking import Asking
from weft.paths import ROOT
from weft.system.child_processes import python_environment
from weft.workbench.jobs import MOST_AT_ONCE, Jobs
from weft.workbench.pages import POLICY
from weft.workbench.server import WorkbenchServer

LONG = """
name: long
clock: virtual
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 2, host_rate: 100Gb/s}
traffic:
"""
LONG += "  - {incast: h0, bytes_per_sender: 2GiB, data: lengths}\n" * 100


def begin_long(bench: Asking) -> dict[str, Any]:
    """Start a run that would take an hour; returns it when its traffic runs."""
    job = dict(bench.ask("run", file="long.yaml")["job"])
    while job["share"] is None:
        """Until it has said how far it is."""
        (job,) = [each for each in bench.ask("jobs")["jobs"] if each["number"] == job["number"]]
        assert job["state"] == "running"
    return job


def test_a_run_leaves_what_the_command_leaves(bench: Asking, folder: Path) -> None:
    job = bench.ended(bench.ask("run", file="pair.yaml"))
    assert (job["state"], job["code"], job["made"]) == ("done", 0, "pair-1")
    assert "incast on h0" in job["output"]
    assert '{"progress"' not in job["output"]
    subprocess.run(
        [sys.executable, "-m", "weft", "run", "pair.yaml", "--out", "runs/pair-by-hand"],
        cwd=folder, env=python_environment(), check=True, capture_output=True,
    )  # fmt: skip
    results = [(folder / f"runs/{run}/results.json").read_bytes() for run in ("pair-1", "pair-by-hand")]
    assert results[0] == results[1]
    subprocess.run(
        [sys.executable, "-m", "weft", "run", "pair.yaml"],
        cwd=folder, env=python_environment(), check=True, capture_output=True,
    )  # fmt: skip
    found = bench.ask("runs", file="pair.yaml")["runs"]
    assert found[0]["run"].startswith("pair-20")
    assert found[1]["run"] == "pair-1"
    assert [each["run"] for each in bench.ask("runs", file="pair.yaml", all=True)["runs"]][1] == "pair-by-hand"
    assert found[0] | {"run": "", "written_s": 0} == found[1] | {"run": "", "written_s": 0}
    assert (found[0]["ok"], found[0]["drops"], found[0]["phases"][0]["name"]) == (True, 0, "incast on h0, plane 0")


def test_pages_are_made_and_served_in_a_sandbox(bench: Asking, folder: Path) -> None:
    for _ in range(2):
        bench.ended(bench.ask("run", file="pair.yaml"))
    report = bench.ended(bench.ask("report", run="pair-1"))
    compared = bench.ended(bench.ask("compare", runs=["pair-2", "pair-1"]))
    traced = bench.ended(bench.ask("trace", file="pair.yaml", switch="p0l0", packets="2", when="ipv4.ttl > 1"))
    for job, word in ((report, "pair"), (compared, "pair-2 and pair-1"), (traced, "step by step")):
        assert job["code"] == 0, job["output"]
        status, headers, page = bench.raw(job["page"])
        assert status == 200
        assert word in page
        assert headers["content-security-policy"] == POLICY
        assert POLICY.startswith("sandbox allow-scripts")
        assert "allow-same-origin" not in POLICY
    assert (folder / "runs/pair-1/report.html").exists()
    # The report is there already, and has an address of its own for each question.
    again = bench.ask("report", run="pair-1")["page"]
    assert again != report["page"]
    assert bench.raw(again)[2] == bench.raw(report["page"])[2]
    (folder / "runs/pair-1/report.html").unlink()
    (folder / "runs/pair-1/report.html").symlink_to("/etc/passwd")
    assert bench.raw(again)[0] == 404


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"switch": "p9s9"}, "p9s9"),
        ({"switch": "p0l0", "when": "--help"}, "--when"),
        ({"switch": "--page=/tmp/x"}, "--page=/tmp/x"),
        ({"switch": "p0l0", "packets": "-1"}, "packets"),
    ],
)
def test_options_of_traces_are_values_and_nothing_else(
    bench: Asking, folder: Path, given: dict[str, str], said: str
) -> None:
    job = bench.ended(bench.ask("trace", file="pair.yaml", **given))
    assert job["state"] == "failed"
    assert job["page"] is None
    assert said in job["output"]


@pytest.mark.parametrize("value", [5, ["a"], "two\nlines", "\0", "x" * 1001])
def test_options_of_traces_are_single_lines(bench: Asking, value: object) -> None:
    assert bench.refused("trace", file="pair.yaml", switch=value)[0] == 400


@pytest.mark.parametrize("runs", [None, [], ["pair-1"], "pair-1", ["pair-1"] * 13])
def test_two_to_twelve_runs_are_compared(bench: Asking, runs: object) -> None:
    assert bench.refused("compare", runs=runs)[0] == 400


def test_a_drawing_is_given_once(bench: Asking) -> None:
    job = bench.ended(bench.ask("draw", file="pair.yaml"))
    assert "p0l0" in bench.ask("drawing", job=job["number"])["svg"]
    assert "has not drawn" in bench.refused("drawing", job=job["number"])[1]
    for number in (0, -1, None, "1", True, 10**9):
        assert bench.refused("drawing", job=number)[0] == 400
        assert bench.refused("cancel", job=number)[0] == 400


def test_a_new_drawing_cancels_the_one_before_and_takes_no_runs_place(bench: Asking, folder: Path) -> None:
    large = "fabric: {planes: 8, leaves: 256, spines: 16, hosts_per_leaf: 32}\n"
    (folder / "large.yaml").write_text(large, encoding="utf-8")
    (folder / "long.yaml").write_text(LONG, encoding="utf-8")
    runs = [bench.ask("run", file="long.yaml") for _ in range(MOST_AT_ONCE)]
    first = bench.ask("draw", file="large.yaml")
    second = bench.ask("draw", file="large.yaml")
    bench.ask("cancel", job=second["job"]["number"])
    assert {bench.ended(each)["state"] for each in (first, second)} == {"cancelled"}
    for each in runs:
        bench.ask("cancel", job=each["job"]["number"])
        bench.ended(each)


def test_a_run_that_fails_leaves_its_message_and_no_directory(bench: Asking, folder: Path) -> None:
    (folder / "bad.yaml").write_text("fabric: {leaves: x}\n", encoding="utf-8")
    job = bench.ended(bench.ask("run", file="bad.yaml"))
    assert (job["state"], job["code"]) == ("failed", 3)
    assert job["output"] == "weft: bad.yaml:1: fabric.leaves: 'x' is not a whole number"
    assert list((folder / "runs").iterdir()) == []


def test_a_run_is_cancelled_and_leaves_nothing(bench: Asking, folder: Path) -> None:
    (folder / "long.yaml").write_text(LONG, encoding="utf-8")
    job = begin_long(bench)
    assert 0 <= job["share"] < 1
    assert "emulated" in job["progress"]
    assert "is in use" in bench.refused("rename", file="long.yaml", to="other.yaml")[1]
    version = bench.ask("read", file="long.yaml")["version"]
    assert "is in use" in bench.refused("delete", file="long.yaml", version=version)[1]
    assert bench.ask("cancel", job=job["number"])["job"]["state"] == "cancelling"
    ended = bench.ended({"job": job})
    assert (ended["state"], ended["code"]) == ("cancelled", 130)
    assert ended["output"].endswith("weft: interrupted")
    assert list((folder / "runs").iterdir()) == []
    bench.ask("cancel", job=job["number"])  # the second time does nothing
    assert bench.ask("jobs")["jobs"] == []


def test_runs_at_the_same_time_have_their_own_directories_and_a_bound(bench: Asking, folder: Path) -> None:
    (folder / "long.yaml").write_text(LONG, encoding="utf-8")
    jobs = [bench.ask("run", file="long.yaml") for _ in range(MOST_AT_ONCE)]
    assert len({each["job"]["made"] for each in jobs}) == MOST_AT_ONCE
    status, said = bench.refused("run", file="long.yaml")
    assert (status, f"{MOST_AT_ONCE} commands are running" in said) == (409, True)
    for each in jobs:
        bench.ask("cancel", job=each["job"]["number"])
    for each in jobs:
        bench.ended(each)
    assert list((folder / "runs").iterdir()) == []
    bench.ended(bench.ask("run", file="pair.yaml"))
    assert [each.name for each in (folder / "runs").iterdir()] == ["pair-1"]


def test_leaving_the_workbench_ends_its_commands(folder: Path) -> None:
    (folder / "long.yaml").write_text(LONG, encoding="utf-8")
    with WorkbenchServer(folder, port=0) as server:
        bench = Asking(server)
        job = server.jobs.job(begin_long(bench)["number"])
        scratch = server.way_in().parent
    assert job.process.returncode == 130
    assert list((folder / "runs").iterdir()) == []
    assert not scratch.exists()


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("print('x' * 5000)", ["x" * 1000]),
        ("import sys; sys.stdout.write('y' * 200000)", None),
        ("print('\\x1b[31mred')", ["\ufffd[31mred"]),
        ("print('{\"progress\": 1}'); print('{\"progress\"')", ['{"progress": 1}', '{"progress"']),
        ('print(\'{"progress": {"share": "x", "text": 5}}\'); print(\'a\')', ["a"]),
        ("print('{\"progress\": {\"share\": NaN}}'); print('a')", ["a"]),
        ("print('{\"progress\": {\"share\": 1' + 400 * \"0\" + '}}'); print('a')", ["a"]),
        ("[print(n) for n in range(1000)]", [str(number) for number in range(600, 1000)]),
    ],
)
def test_output_is_bounded_and_printable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, lines: list[str] | None
) -> None:
    monkeypatch.setattr("weft.workbench.jobs.python_module", lambda _: [sys.executable, "-c", script])
    with Jobs(tmp_path) as jobs:
        job = jobs.start("run", "x.yaml", ["run"])
        assert job.has_ended.wait(60)
    if lines is None:
        assert all(len(line) <= 1000 for line in job.lines)
    else:
        assert list(job.lines) == lines


@contextlib.contextmanager
def workbench_of(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command; gives its process and the line with the address."""
    # Not ignored, as in a program that a shell starts in the background.
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from weft.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", start, "workbench", str(folder), "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=python_environment(),
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def asking_at(line: str) -> Asking:
    address, _, token = line.split()[-1].partition("/#token=")
    host, _, port = address.removeprefix("http://").partition(":")
    asking = Asking.__new__(Asking)
    asking.server = type("Server", (), {"place": (host, int(port))})()  # type: ignore[assignment]
    asking.token = token
    return asking


def pid_of_run(server: int) -> int:
    tasks = Path(f"/proc/{server}/task").iterdir()
    (child,) = [pid for task in tasks for pid in (task / "children").read_text(encoding="utf-8").split()]
    return int(child)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_a_workbench_that_ends_leaves_no_run(folder: Path, number: signal.Signals) -> None:
    (folder / "long.yaml").write_text(LONG, encoding="utf-8")
    with workbench_of(folder) as (process, line):
        assert line.startswith("workbench at http://127.0.0.1:")
        begin_long(asking_at(line))
        run = os.pidfd_open(pid_of_run(process.pid))
        with contextlib.closing(os.fdopen(run)):
            process.send_signal(number)
            code = process.wait(60)
            # Also the run of a workbench that could not end it: its standard input has ended.
            assert select.select([run], [], [], 60)[0] == [run]
    assert code == {signal.SIGINT: 0, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert list((folder / "runs").iterdir()) == [] or number == signal.SIGKILL


def test_progress_can_be_had_as_json(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft", "run", "pair.yaml", "--json"],
        cwd=folder, env=python_environment() | {"WEFT_PROGRESS": "json"}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    stages = [json.loads(line)["progress"].get("stage") for line in done.stderr.splitlines()]
    assert "incast on h0" in stages
    json.loads(done.stdout)

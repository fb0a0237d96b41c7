import json
import os
import subprocess
import sys

import pytest

from tests.refusals import refused
from weft.clocks.real import interfaces, lab_state
from weft.errors import EnvironmentLacksError
from weft.system.processes import ProcessId, end


@pytest.fixture
def state_file(tmp_path):
    return tmp_path / "lab.json"


def sleeper() -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])


def test_a_state_comes_back_as_it_was_saved(state_file):
    state = lab_state.claim(state_file)
    state.interface_group = 7
    state.grpc = {"p0l0": ("127.0.0.1:9559", 1)}
    state.dropped_packet_ins = {"p0l0": 3}
    state.save(state_file)
    assert lab_state.load(state_file) == state


def test_clean_ends_the_listed_processes_and_no_others(state_file, tmp_path):
    mine, other = sleeper(), sleeper()
    try:
        state = lab_state.claim(state_file)
        state.processes = [ProcessId.of(mine.pid), ProcessId(other.pid, 1)]  # a reused id: another start time
        state.directories = [str(tmp_path / "scratch")]
        (tmp_path / "scratch").mkdir()
        state.save(state_file)
        removed = lab_state.clean(state_file)
        assert mine.wait(10) != 0
        assert other.poll() is None
        assert removed == [f"process {mine.pid}", f"directory {tmp_path / 'scratch'}"]
        assert not state_file.exists()
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()


def test_no_group_is_not_the_group_of_all_interfaces(monkeypatch):
    """The kernel's default group is 0, as is that of a state from before the lab's first interface."""
    commands = []
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **_: commands.append(arguments))
    assert interfaces.delete_all(0) == []
    assert not commands


def test_a_running_lab_is_neither_claimed_nor_cleaned(state_file):
    owner = sleeper()
    try:
        lab_state.LabState(ProcessId.of(owner.pid)).save(state_file)
        with refused(EnvironmentLacksError, problem=f"process {owner.pid}"):
            lab_state.claim(state_file)
        with refused(EnvironmentLacksError, problem="--force"):
            lab_state.clean(state_file)
        assert owner.poll() is None
        lab_state.clean(state_file, force=True)
        assert owner.wait(10) != 0
    finally:
        owner.kill()
        owner.wait()


def test_a_dead_owners_lab_is_taken_over(state_file):
    owner = sleeper()
    identity = ProcessId.of(owner.pid)
    owner.kill()
    owner.wait()
    lab_state.LabState(identity).save(state_file)
    assert lab_state.claim(state_file).owner.pid == os.getpid()


def test_nothing_to_clean(state_file):
    assert lab_state.clean(state_file) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"owner": {"pid": "x"}}',
        '{"owner": {"pid": 1, "start_ticks": 1}, "processes": [], "grpc": []}',
    ],
)
def test_a_broken_state_file_is_reported_by_name(state_file, text):
    state_file.write_text(text, encoding="utf-8")
    with refused(EnvironmentLacksError, place="lab.json", problem="lab"):
        lab_state.load(state_file)


def test_a_process_that_ignores_sigterm_is_killed():
    script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    assert end(ProcessId.of(process.pid), patience_s=0.2)
    assert process.wait(10) == -9
    process.stdout.close()


def test_the_saved_file_is_plain_json(state_file):
    lab_state.claim(state_file)
    assert json.loads(state_file.read_text())["owner"]["pid"] == os.getpid()


def test_of_labs_that_start_at_once_one_gets_the_machine(state_file):
    script = (
        "import sys; from pathlib import Path\n"
        "from weft.clocks.real import lab_state; from weft.errors import WeftError\n"
        "try: lab_state.claim(Path(sys.argv[1])); print('mine', flush=True); sys.stdin.read()\n"
        "except WeftError: print('taken', flush=True)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(state_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    said = sorted(process.stdout.readline().strip() for process in processes)
    for process in processes:
        process.communicate()
    assert said == ["mine", "taken", "taken", "taken"]

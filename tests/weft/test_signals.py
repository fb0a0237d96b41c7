"""What signals do while a lab exists, and that they do what they did before once it is gone."""

import contextlib
import fcntl
import gc
import itertools
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from weft import topologies
from weft.clocks import lab
from weft.clocks.real.lab import MininetLab
from weft.error_translation import raised_as_weft_errors
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario.options import FabricOptions
from weft.system import scratch
from weft.system.signals import interruptions_first, signals_unwind

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failure(Exception):
    pass


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in NUMBERS]


@pytest.fixture
def an_empty_lab(monkeypatch):
    """Return a lab that builds nothing."""
    monkeypatch.setattr(lab, "require_for", lambda fabric, options: None)
    monkeypatch.setattr(MininetLab, "_build", lambda self, stack: None)
    return MininetLab(topologies.leaf_spine(), FabricOptions())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_lab_unwinds(an_empty_lab, number):
    before = handlers()
    with pytest.raises(SystemExit) as ended, an_empty_lab:
        os.kill(os.getpid(), number)
    assert ended.value.code == 128 + number
    assert handlers() == before


def test_taking_down_cannot_be_interrupted(an_empty_lab, monkeypatch):
    seen = []
    before = handlers()

    def build(self, stack):
        stack.callback(lambda: seen.append("the rest"))
        stack.callback(lambda: [os.kill(os.getpid(), number) for number in NUMBERS])

    monkeypatch.setattr(MininetLab, "_build", build)
    with an_empty_lab:
        pass
    assert seen == ["the rest"]
    assert handlers() == before


def test_a_build_that_fails_takes_down_what_was_made(an_empty_lab, monkeypatch):
    seen = []
    before = handlers()

    def build(self, stack):
        stack.callback(lambda: seen.append("first"))
        stack.callback(lambda: os.kill(os.getpid(), signal.SIGINT))
        raise Failure

    monkeypatch.setattr(MininetLab, "_build", build)
    with pytest.raises(Failure):
        an_empty_lab.__enter__()
    assert seen == ["first"]
    assert handlers() == before


@pytest.fixture(autouse=True)
def _no_garbage():
    """Functions that the collector calls for what other tests left would count as calls here."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)


def all_reduce(fabric):
    run = fabric.run(CollectiveRequest("allreduce", [np.ones(1000, np.int32)] * 2, "in-network"))
    assert run.result.ok


def calls_of(use, fabric):
    """Return the number of Python functions that a use of the fabric calls."""
    count = 0

    def hook(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(hook)
    try:
        use(fabric)
    finally:
        sys.setprofile(None)
    return count


@contextlib.contextmanager
def signal_at(call, number):
    """Send the process a signal when the `call`-th Python function from here on is called."""
    left = call

    def hook(frame, event, argument):
        nonlocal left
        left -= event == "call"
        if not left:
            sys.setprofile(None)
            signal.raise_signal(number)

    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(None)


def ends_of(number):
    return KeyboardInterrupt if number == signal.SIGINT else SystemExit


def test_a_signal_at_any_moment_is_what_comes_out_and_the_fabric_goes_on():
    with Fabric(TOPOLOGY, clock="virtual") as fabric:
        all_reduce(fabric)
        for moment, number in zip(range(40), itertools.cycle(NUMBERS)):
            call = 1 + moment * calls_of(all_reduce, fabric) // 41
            with pytest.raises(ends_of(number)), signal_at(call, number):
                all_reduce(fabric)
            all_reduce(fabric)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.8])  # a fabric takes signals after 7 % of its calls
def test_a_signal_while_a_fabric_is_built_or_left_comes_out(share, number):
    def whole(fabric):
        with fabric:
            all_reduce(fabric)

    def new():
        return Fabric(TOPOLOGY, clock="virtual")

    whole(new())
    before = handlers()
    calls, fabric = calls_of(whole, new()), new()
    with pytest.raises(ends_of(number)), signal_at(int(share * calls), number):
        whole(fabric)
    assert handlers() == before


def test_an_interruption_that_c_code_replaces_comes_out():
    def replaced():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise TypeError from None

    with pytest.raises(KeyboardInterrupt), signals_unwind(), interruptions_first():
        replaced()


def test_a_signal_while_a_class_of_a_user_runs_is_no_exit_of_that_class():
    user = {"__weft_extension__": True, "signal": signal}
    exec("def runs(number): signal.raise_signal(number)", user)
    for number in (signal.SIGTERM, signal.SIGHUP):
        with pytest.raises(SystemExit, match=str(128 + number)), signals_unwind(), raised_as_weft_errors():
            user["runs"](number)


def test_an_interruption_that_the_caller_dealt_with_is_over():
    with signals_unwind():
        with contextlib.suppress(KeyboardInterrupt), interruptions_first():
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(Failure), interruptions_first():
            raise Failure


SCENARIO = """
name: interrupted
clock: virtual
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 1}
traffic:
  - {collective: allreduce, algorithms: [ring], dtype: int32, sizes: [4M], repetitions: 1000}
"""


@pytest.fixture
def virtual_run(tmp_path):
    """Start `weft run`, its temporary files below tmp_path; return it once its traffic runs."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "weft",
            "run",
            str(tmp_path / "scenario.yaml"),
            "--out",
            str(tmp_path / "out"),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert any("all-reduce" in line for line in process.stderr)
    yield process
    process.kill()
    process.wait()
    process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_virtual_run_that_is_ended_says_no_more_than_that(virtual_run, tmp_path, number, status):
    virtual_run.send_signal(number)
    said = virtual_run.stderr.read()
    assert virtual_run.wait(60) == status
    assert "Traceback" not in said
    assert not list(tmp_path.glob("weft-*"))


@pytest.mark.slow
def test_clean_removes_what_a_killed_virtual_run_leaves_and_nothing_else(virtual_run, tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path), "WEFT_STATE_FILE": str(tmp_path / "lab.json")}
    others = tmp_path / "weft-of-another-user"
    others.mkdir()
    (running,) = tmp_path.glob("weft-[0-9]*")

    def clean():
        command = [sys.executable, "-m", "weft", "clean"]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert clean() == "nothing to clean\n"
    virtual_run.kill()
    virtual_run.wait()
    assert running.is_dir()
    assert clean() == f"removed directory {running}\n"
    assert not running.exists()
    assert others.is_dir()


def test_a_scratch_directory_is_known_by_its_lock_even_if_its_process_cannot_be_seen(tmp_path, monkeypatch):
    """A process of another namespace has an id that means nothing here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    unknown = tmp_path / "weft-999999999-1-abc"
    unknown.mkdir()
    descriptor = os.open(unknown, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert scratch.remove_abandoned() == []
    os.close(descriptor)
    with scratch.scratch_directory() as mine:
        assert scratch.remove_abandoned() == [unknown]
        assert mine.is_dir()
    assert list(tmp_path.iterdir()) == []

"""Talking JSON lines to a child process that behaves, misbehaves or dies."""

import subprocess
import sys

import pytest

from tests.refusals import refused
from weft.system.child_processes import ChildError, JsonLinesChild

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a child from Python source; its stderr goes to its log."""
    children = []

    def started(text: str) -> JsonLinesChild:
        log = tmp_path / "child.log"
        with log.open("w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                [sys.executable, "-c", text],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        children.append(JsonLinesChild("the child", process, log))
        return children[-1]

    yield started
    for child in children:
        child.close(patience_s=0.5)
        assert child.process.poll() is not None


def test_every_command_has_its_answer(start):
    child = start(ECHO)
    child.send({"command": "a"})
    child.send({"command": "b"})
    assert child.read_answer(10.0) == {"command": "a"}
    assert child.read_answer(10.0) == {"command": "b"}
    assert child.call({"command": "ü"}) == {"command": "ü", "id": 1}


def test_an_answer_that_nobody_read_is_not_taken_for_the_next(start):
    child = start(ECHO)
    child.send({"command": "interrupted", "id": 7, "error": "of that one"})
    child.send({"command": "next", "id": 8})
    assert child.read_answer(10.0, 8)["command"] == "next"


def test_a_refusal_is_reported_in_the_childs_words(start):
    with refused(ChildError, problem="the child: no such port"):
        start(ECHO).call({"error": "no such port"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("print('hello')", {"problem": "answered 'hello', which is not"}),
        ("print([1])", {"problem": "which is not an object"}),
        ("import sys; sys.exit('disk full')", {"problem": "ended with status 1; its log"}),
        ("raise SystemExit(7)", {"problem": "ended with status 7 (its log,"}),
    ],
)
def test_a_child_that_misbehaves_is_reported_with_its_log(start, text, words):
    with refused(ChildError, **words):
        start(text).read_answer(10.0)


def test_a_child_that_does_not_answer_is_given_up(start):
    with refused(ChildError, problem="did not answer within 0.05 s"):
        start("import signal; signal.pause()").read_answer(0.05)


def test_a_command_to_a_dead_child_is_reported(start):
    child = start("raise SystemExit(7)")
    child.process.wait()
    with refused(ChildError, problem="the child is gone"):
        child.call({"command": "x" * 100_000})


def test_a_child_that_ignores_everything_is_killed(start):
    child = start(
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{}', flush=True); signal.pause()"
    )
    child.read_answer(10.0)
    child.close(patience_s=0.1)
    assert child.process.returncode == -9


def test_the_death_of_what_a_child_needs_ends_a_wait_at_once(start):
    needed = start("import sys; print('up', flush=True); sys.stdin.readline(); sys.exit('out of memory')")
    waiting = start(ECHO)
    dependent = JsonLinesChild("the endpoint", waiting.process, waiting.log, [needed.watched])
    assert dependent.call({"command": "a"}) == {"command": "a", "id": 1}
    needed.send({"command": "leave"})
    with refused(ChildError, problem="the child ended with status 1"):
        dependent.read_answer(timeout_s=600.0)
    with refused(ChildError, problem="the child ended with status 1"):
        dependent.call({"command": "b"})

"""What signals do while a lab exists, and that they do what they did before once it is gone."""

import os
import signal

import pytest

import topologies
from weft import lab
from weft.emulated.lab import MininetLab
from weft.options import FabricOptions

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

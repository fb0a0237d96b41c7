"""`weft exec` without a lab, and with one that has gone; with one it is in tests/end_to_end/test_mpi.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.cli import main
from weft.clocks.real import lab_state
from weft.system.processes import ProcessId
from weft.topologies import leaf_spine


@pytest.fixture
def state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lab.json"
    monkeypatch.setattr(lab_state, "STATE_FILE", path)
    return path


def run(*arguments: str) -> object:
    with pytest.raises(SystemExit) as left:
        main(["exec", *arguments])
    return left.value.code


def test_without_a_lab(state_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mininet")
    assert run("h0", "true") == 4
    assert "no lab of the real clock runs" in capsys.readouterr().err


def test_hosts_that_are_none_and_that_have_gone(state_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mininet")
    owner = ProcessId.of(os.getpid())
    assert owner is not None
    gone = ProcessId(owner.pid, owner.start_ticks + 1)
    lab_state.LabState(owner, hosts={"h0": gone, "h1": gone}).save(state_file)
    assert run("h7", "true") == 3
    assert "unknown host 'h7'" in capsys.readouterr().err
    assert run("h0", "ls", "--color", "-l") == 4
    assert "h0 has gone" in capsys.readouterr().err


def test_whoever_may_not_enter_a_host_is_told_so(
    state_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mininet")
    owner = ProcessId.of(os.getpid())
    assert owner is not None
    lab_state.LabState(owner, hosts={"h0": owner}).save(state_file)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert run("h0", "true") == 4
    assert "sudo weft exec h0" in capsys.readouterr().err


def test_every_node_has_a_name() -> None:
    pytest.importorskip("mininet")
    from weft.clocks.hosts_file import hosts_file

    fabric = leaf_spine(planes=2, leaves=1, spines=1, hosts_per_leaf=1)
    assert hosts_file(fabric).splitlines() == [
        "127.0.0.1 localhost",
        "::1 localhost ip6-localhost ip6-loopback",
        "10.0.0.1 h0 h0-eth0",
        "fd00::1 ip6-h0 ip6-h0-eth0",
        "10.1.0.1 h0-eth1",
        "fd00:1::1 ip6-h0-eth1",
        "10.0.0.254 p0l0",
        "fd00::fe ip6-p0l0",
        "10.0.255.1 p0s0",
        "fd00:0:ff::1 ip6-p0s0",
        "10.1.0.254 p1l0",
        "fd00:1::fe ip6-p1l0",
        "10.1.255.1 p1s0",
        "fd00:1:ff::1 ip6-p1s0",
    ]

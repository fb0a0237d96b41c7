"""`make test` runs all stages (.ci/test): here with a stand-in for make, whose stages are sleeps and words."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "test"
MAKE = """#!/usr/bin/env bash
set -e
cd "$(dirname "$0")"
stage=$2
echo "$stage begins with $3"
case $stage in
  test-fast) echo $$ >fast; [[ ! -e long ]] || exec sleep 1000 ;;
  # The fast stage has begun, and its output is not yet shown.
  test-labs) until [[ -s fast ]]; do sleep 0.01; done; [[ ! -e long ]] || { echo $$ >labs; exec sleep 1000; } ;;
esac
echo "$stage ends"
[[ ! -e fails-$stage ]]
"""


@pytest.fixture
def make(tmp_path: Path) -> Path:
    path = tmp_path / "make"
    path.write_text(MAKE, encoding="utf-8")
    path.chmod(0o755)
    return path


def started(make: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [SCRIPT, *arguments],
        env=os.environ | {"MAKE": str(make), "TMPDIR": str(make.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def lines_of(*stages: str, part: str = "") -> list[str]:
    return [
        line
        for each in stages
        for line in (f"== test-{each}", f"test-{each} begins with PART={part}", f"test-{each} ends")
    ]


@pytest.mark.parametrize("failing", [[], ["lint"], ["labs", "gate", "fast", "slow"]], ids="-".join)
def test_stages_come_one_after_the_other_and_those_that_fail_are_named(make: Path, failing: list[str]) -> None:
    for each in failing:
        (make.parent / f"fails-test-{each}").touch()
    process = started(make)
    output, errors = process.communicate(timeout=60)
    assert errors == ""
    named = [f"make test: failed in: {' '.join(failing)}"] if failing else []
    assert output.splitlines() == [*lines_of("lint", "labs", "gate", "fast", "slow"), *named]
    assert process.returncode == bool(failing)


def test_every_stage_is_told_its_part(make: Path) -> None:
    output, _ = started(make, "3/8").communicate(timeout=60)
    assert output.splitlines() == lines_of("lint", "labs", "gate", "fast", "slow", part="3/8")


def test_an_interrupt_ends_all_stages(make: Path) -> None:
    (make.parent / "long").touch()
    process = started(make)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("test-labs begins"):
            break
    while not (make.parent / "labs").exists():
        assert process.poll() is None
    fast = os.pidfd_open(int((make.parent / "fast").read_text(encoding="utf-8")))
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        signal.pidfd_send_signal(fast, 0)
    os.close(fast)
    assert not list(make.parent.glob("tmp.*"))


@pytest.mark.mininet
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_runs_apart_sees_no_lab_and_leaves_nothing() -> None:
    interfaces = os.listdir("/sys/class/net")
    shown = "ls /sys/class/net /run/weft /run/netns; ip link show up"
    command = f"{shown}; ip link add left type veth; touch /run/weft/left"
    done = subprocess.run(
        [SCRIPT.with_name("apart"), "bash", "-euc", command], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("/run/netns:\n\n/run/weft:\n\n/sys/class/net:\nlo\n")
    assert "LOOPBACK,UP" in done.stdout
    assert os.listdir("/sys/class/net") == interfaces
    assert not Path("/run/weft/left").exists()

"""RDMA programs as a user without any privilege: in virtual time, and in a lab of the real clock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from verbs_programs import needs_device
from weft.paths import ROOT

_NOBODY = 65534
_AS_NOBODY = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
_OWN = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
# As docs/verbs.md has it.
_PLACE = "mount -t tmpfs tmpfs /run && mkdir /run/netns /run/weft && mount -t sysfs sysfs /sys && ip link set lo up"


def _lacking() -> str:
    if os.geteuid() != 0:
        return "needs root, to become nobody"
    done = subprocess.run([*_AS_NOBODY, *_OWN, "sh", "-c", _PLACE], check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"this machine has no namespaces for users: {done.stderr.strip()}"


pytestmark = [
    needs_device,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("ib_write_bw") is None, reason="apt install perftest"),
]


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """Return a folder that nobody may enter and write: those of other tests are root's."""
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, _NOBODY, _NOBODY)
        yield Path(name)


@pytest.mark.parametrize("clock", ["virtual", pytest.param("real", marks=pytest.mark.mininet)])
def test_rdma_programs_run(clock: str, nobodys: Path) -> None:
    if reason := _lacking():
        pytest.skip(reason)
    both = "ib_write_bw -x 0 -F -n 5 -s 4096"
    scenario = nobodys / "run.yaml"
    scenario.write_text(
        f"{{name: own, clock: {clock}, {'dilation: 1000, ' if clock == 'real' else ''}"
        "fabric: {planes: 1, leaves: 1, spines: 1}, "
        f"traffic: [{{exec: {{h0: {both}, h1: {both} h0}}}}]}}"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(nobodys), "TMPDIR": str(nobodys), "PYTHONPATH": str(ROOT)}
    command = f"{_PLACE} && exec {sys.executable} -m weft run {scenario}"
    done = subprocess.run(
        [*_AS_NOBODY, *_OWN, "sh", "-c", command],
        cwd=nobodys,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    # Of its client: what it has sent.
    assert "4096       5" in done.stdout, done.stdout + done.stderr

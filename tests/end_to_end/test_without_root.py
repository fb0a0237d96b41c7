"""RDMA programs as a user without any privilege: in virtual time, and in a lab of the real clock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


@pytest.mark.parametrize("clock", ["virtual", pytest.param("real", marks=pytest.mark.mininet)])
def test_rdma_programs_run(clock: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    if reason := _lacking():
        pytest.skip(reason)
    both = "ib_write_bw -x 0 -F -n 5 -s 4096"
    scenario = tmp_path / "run.yaml"
    scenario.write_text(
        f"{{name: own, clock: {clock}, {'dilation: 1000, ' if clock == 'real' else ''}"
        "fabric: {planes: 1, leaves: 1, spines: 1}, "
        f"traffic: [{{exec: {{h0: {both}, h1: {both} h0}}}}]}}"
    )
    for folder in (tmp_path, *tmp_path.parents):
        if tmp_path_factory.getbasetemp() not in (folder, *folder.parents):
            break
        folder.chmod(0o755)
    tmp_path_factory.getbasetemp().parent.chmod(0o755)
    os.chown(tmp_path, _NOBODY, _NOBODY)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = f"{_PLACE} && exec {sys.executable} -m weft run {scenario}"
    done = subprocess.run(
        [*_AS_NOBODY, *_OWN, "sh", "-c", command],
        cwd=tmp_path,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    # Of its client: what it has sent.
    assert "4096       5" in done.stdout, done.stdout + done.stderr

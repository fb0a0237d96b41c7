"""A user's Mininet script works with `weft switch` in place of simple_switch_grpc: only the binary's name differs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.compiler import compile_file

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
WEFT_SWITCH = f"{sys.executable} -c 'from weft.thrift.commands import switch; switch()'"

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(shutil.which("mnexec") is None, reason="needs Mininet"),
]


@pytest.mark.parametrize(
    "binary",
    [
        WEFT_SWITCH,
        pytest.param(
            "simple_switch_grpc",
            marks=[
                pytest.mark.reference,
                pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="not on PATH"),
            ],
        ),
    ],
    ids=["weft", "bmv2"],
)
def test_hosts_reach_each_other(binary: str, tmp_path: Path) -> None:
    result = compile_file(FOLDER / "programs" / "basic_forward.p4")
    files = {"basic.json": result.json_text(), "basic.txtpb": result.p4info_text()}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, str(FOLDER / "tutorial_network.py"), binary]
    command += [str(tmp_path / name) for name in files] + [str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(FOLDER)])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    log = tmp_path / "s1.log"
    assert " 3 received" in done.stdout, done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    captures = {path.name for path in tmp_path.glob("*.pcap")}
    assert captures == {f"s1-eth{port}_{way}.pcap" for port in (1, 2) for way in ("in", "out")}
    assert "MyIngress.ipv4_lpm" in log.read_text(), "packets are logged"

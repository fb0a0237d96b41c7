"""PTF, unmodified: docs/ptf.md's example against `weft switch` on veth pairs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.paths import ROOT, SHELL_PYTHON

PYTHON = Path(os.environ.get("WEFT_SHELL_PYTHON", SHELL_PYTHON))
PTF = PYTHON.parent / "ptf"
EXAMPLE = ROOT / "docs" / "ptf"
PORTS = (1, 2)

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.skipif(not PTF.exists(), reason="PTF is not installed in .venv-shell (docs/ptf.md)"),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2"),
]


@pytest.fixture
def cables() -> Iterator[dict[int, tuple[str, str]]]:
    """For each port the switch's end and PTF's end of a veth pair."""
    made = {port: (f"wptf{port}s", f"wptf{port}t") for port in PORTS}
    try:
        for inner, outer in made.values():
            subprocess.run(["ip", "link", "add", inner, "type", "veth", "peer", "name", outer], check=True)
            for end in (inner, outer):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                subprocess.run(["ip", "link", "set", end, "up"], check=True)
        yield made
    finally:
        for inner, _ in made.values():
            subprocess.run(["ip", "link", "del", inner], check=False, capture_output=True)


@pytest.fixture
def address(cables: dict[int, tuple[str, str]]) -> Iterator[str]:
    """Where a `weft switch` on these ports serves P4Runtime."""
    interfaces = [word for port, (inner, _) in cables.items() for word in ("-i", f"{port}@{inner}")]
    target = ["--", "--grpc-server-addr", "127.0.0.1:0"]
    command = [sys.executable, "-m", "weft", "switch", "--no-p4", "--device-id", "1", "--log-console"]
    with subprocess.Popen(
        [*command, *interfaces, *target],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as switch:
        try:
            assert switch.stdout is not None
            for line in switch.stdout:
                if match := re.search(r"P4Runtime on (127\.0\.0\.1:\d+)", line):
                    break
            else:
                pytest.fail("weft switch has ended")
            yield match[1]
        finally:
            switch.terminate()


@pytest.mark.timeout(180)
def test_the_documented_ptf_tests_pass(cables: dict[int, tuple[str, str]], address: str, tmp_path: Path) -> None:
    document, info = tmp_path / "forward.json", tmp_path / "forward.p4info.txtpb"
    compile_command = [sys.executable, "-m", "weft", "compile", EXAMPLE / "forward.p4"]
    subprocess.run([*compile_command, "-o", document, "--p4info", info], cwd=ROOT, check=True)
    interfaces = [word for port, (_, outer) in cables.items() for word in ("-i", f"{port}@{outer}")]
    parameters = f"grpcaddr='{address}';p4info='{info}';config='{document}'"
    done = subprocess.run(
        [PYTHON, PTF, "--test-dir", EXAMPLE, *interfaces, "--test-params", parameters],
        cwd=tmp_path,
        env=os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 2 tests" in done.stdout + done.stderr

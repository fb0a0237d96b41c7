"""finsy reads the switches of a lab of the real clock over gNMI, before and after the lab's traffic."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

CLIENT = Path(__file__).parent / "gnmi_client.py"
BYTES = 65536
SCENARIO = {
    "clock": "real",
    "dilation": 1000.0,
    "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
    "ecn": {"kmin": "1B", "kmax": "2B", "pmax": 1.0},
    "traffic": [{"incast": "h0", "bytes_per_sender": BYTES}],
}


class _Reader:
    """Reads a leaf when the traffic begins and when it has ended."""

    def __init__(self) -> None:
        self.read: list[dict[str, Any]] = []

    def _ask(self, fabric: Fabric) -> None:
        address = fabric.lab.daemon.grpc_address  # type: ignore[attr-defined]
        done = subprocess.run(
            [sys.executable, str(CLIENT), address, "p0l0"], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        self.read.append(json.loads(done.stdout))

    begin = end = _ask


@pytest.mark.mininet
@pytest.mark.parametrize("grpc", ["unix", "tcp"])
def test_finsy_reads_a_lab(grpc: str) -> None:
    reader = _Reader()
    run_scenario(parse_scenario({**SCENARIO, "grpc": grpc}), attached=[reader])
    before, after = reader.read
    ports = sorted(after["leaves"].values(), key=lambda each: each["id"])
    assert [port["id"] for port in ports] == [1, 2, 3]  # h0, h1 and the spine
    assert {(port["admin-status"], port["oper-status"]) for port in ports} == {("UP", "UP")}
    to_h0, to_h1, to_spine = ports
    assert to_h0["out-octets"] > 3 * BYTES
    assert to_h0["out-octets"] == after["later"][to_h0["name"]]
    # h1 sends to h0 within the leaf; the two others send by the spine.
    assert to_h1["in-octets"] > BYTES
    assert to_spine["in-octets"] > 2 * BYTES
    assert {(port["in-errors"], port["out-errors"], port["in-discards"]) for port in ports} == {(0, 0, 0)}
    assert to_h0["ecn-marked-pkts"] > 0  # the senders meet there
    assert to_h0["max-queue-depth-octets"] > 0
    assert sum(port["out-octets"] for port in before["leaves"].values()) < BYTES
    assert len(after["first"]) == 2 * len(ports)

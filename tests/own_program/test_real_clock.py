"""Programs of one's own in Mininet, and what `weft controller` shows of their switches."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from plain_forwarding import PLAIN_P4, TOPOLOGY, write_entries

from weft.controller.cli import controller as command
from weft.run.fabric import Fabric

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mnexec") is None, reason="needs root and Mininet"),
]
VIEWS = (
    "routes",
    "tables",
    "counters",
    "int",
    "load-balancing",
    "trees",
    "jobs",
    "slots",
    "tenants",
    "health",
)


def test_switches_run_different_programs_and_every_view_shows_what_there_is(tmp_path: Path) -> None:
    leaves = {name: path for name, path in write_entries(tmp_path).items() if name != "p0s0"}
    with Fabric(TOPOLOGY, clock="real", programs={"leaf": PLAIN_P4}, entries=leaves) as fabric:
        result = fabric.incast("h0", 4096)
        assert result.flows
        (warning,) = fabric.summary().all_warnings
        assert "p0l0, p0l1 have no table int_port: INT is off." in warning
        for view in (*([name] for name in VIEWS), ["ecn", "show"]):
            shown = CliRunner().invoke(command, [*view, "--json"])
            assert shown.exit_code == 0, (view, shown.output)
        tables = json.loads(CliRunner().invoke(command, ["tables", "p0l0", "--json"]).stdout)
        assert {row["table"] for row in tables} == {"ipv4_lpm"}
        ecn = CliRunner().invoke(command, ["ecn", "show", "--json"])
        assert {row["switch"] for row in json.loads(ecn.stdout)} == {"p0s0"}
        assert "p0l0: its program has no table ecn_thresholds: ecn is off" in ecn.stderr

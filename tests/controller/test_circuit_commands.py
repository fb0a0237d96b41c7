"""`weft controller circuits`: what there is in a running lab, and that its circuits stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from weft.clocks.real.operations_server import OperationsServer
from weft.controller.cli import controller
from weft.topologies import FabricSpec, leaf_spine
from weft.topologies.kinds.optical_core import optical_core

CORE = optical_core(leaves=4, matchings={"a": [0, 1], "b": [0, 2], "c": [1, 0]}, configuration="b")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lab.json"
    monkeypatch.setenv("WEFT_STATE_FILE", str(path))
    return path


def invoke(state: Path, fabric: FabricSpec, *arguments: str, operations: str = "") -> Result:
    document: dict[str, Any] = {
        "fabric": dict(fabric.parameters),
        "grpc": {"p0l0": ["127.0.0.1:1", 1]},
        "operations": operations,
    }
    state.write_text(json.dumps(document), encoding="utf-8")
    return CliRunner().invoke(controller, ["circuits", *arguments])


def test_configurations_are_shown(state: Path) -> None:
    found = invoke(state, CORE, "show", "--json")
    assert found.exit_code == 0, found.output
    rows = json.loads(found.output)
    # Two uplinks of four leaves: each matching has two circuits.
    assert [(row["configuration"], row["in_force"], row["circuits"]) for row in rows] == [
        ("a", False, 4),
        ("b", True, 4),
        ("c", False, 4),
    ]
    assert [(row["would_go"], row["would_come"]) for row in rows] == [(2, 2), (0, 0), (4, 4)]


def test_a_change_is_refused_under_the_real_clock(state: Path, tmp_path: Path) -> None:
    socket = tmp_path / "operations"
    server = OperationsServer(socket, cast("Any", None), cast("Any", None), 1.0, cast("Any", None))
    try:
        refused = invoke(state, CORE, "change", "a", operations=str(socket))
    finally:
        server.close()
    assert refused.exit_code == 4
    assert "under the real clock circuits stay as they are at the start" in refused.output


@pytest.mark.parametrize(
    ("fabric", "arguments", "exit_code", "said"),
    [
        (CORE, ("change", "d"), 3, "unknown configuration 'd' of circuits (valid: a, b, c)"),
        (CORE, ("change", "a"), 4, "this needs a running lab"),
        (leaf_spine(), ("show",), 3, "the fabric has no circuits"),
        (leaf_spine(), ("change", "a"), 3, "the fabric has no circuits"),
    ],
)
def test_what_cannot_be_done_is_refused(
    state: Path, fabric: FabricSpec, arguments: tuple[str, ...], exit_code: int, said: str
) -> None:
    refused = invoke(state, fabric, *arguments)
    assert (refused.exit_code, said in refused.output) == (exit_code, True), refused.output

"""Failures whose effect is measured with packets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.drills.part_failures import settled
from weft.errors import BadInputError
from weft.goodput import MeasuredFailure
from weft.scenario.cluster import FailureSection

PLANES = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gb/s", "oversubscription": 1}
SECTION = FailureSection.model_validate({"part": "link", "mtbf": "100d", "effect": "measured", "repair": "1h"})


def measured(folder: Path, *parts: str, **keys: Any) -> dict[str, Any]:
    """Return goodput.json of a small fabric whose parts' failures are measured."""
    tree = {
        "name": "small",
        "fabric": PLANES,
        "transport": {"congestion_control": "swift"},
        "int": False,
        "traffic": [{"collective": "allreduce", "algorithms": ["ring"], "sizes": ["1MiB"], "data": "lengths"}],
        "cluster": {"failures": [{"part": part, "mtbf": "100d", "effect": "measured"} for part in parts]},
        **keys,
    }
    path = folder / "small.yaml"
    with path.open("w", encoding="utf-8") as file:
        ruamel.yaml.YAML().dump(tree, file)
    command = ["goodput", str(path), "--histories", "5", "--workers", "1", "--out", str(folder / "out")]
    CliRunner().invoke(weft, command, standalone_mode=False, catch_exceptions=False)
    found: dict[str, Any] = json.loads((folder / "out" / "goodput.json").read_text(encoding="utf-8"))
    return found


def test_a_ring_over_two_planes_has_half_its_speed_without_one_and_all_without_a_link(tmp_path: Path) -> None:
    found = measured(tmp_path, "plane", "nic", "link", "switch")
    plane, nic, link, switch = found["measured"]
    # A half, and what a short ring's latency leaves.
    assert all(0.5 < each["speed"] < 0.6 for each in (plane, nic))
    assert (link["error"], switch["error"]) == ("", "")
    assert link["speed"] > 0.9
    assert switch["element"].startswith("switch p")
    assert found["failures_per_day"].keys() == {"plane", "nic", "link", "switch"}
    assert found["spent"]["slowed"]["mean"] > 0


def test_a_job_that_cannot_go_on_without_the_part_starts_again(tmp_path: Path) -> None:
    (nic,) = measured(tmp_path, "nic", fabric=PLANES | {"planes": 1})["measured"]
    assert nic["speed"] == 0
    assert nic["error"]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (MeasuredFailure("link", "l", 0.0, 0.0, "it failed"), {"effect": "restart", "repair": None}),
        (MeasuredFailure("link", "l", 0.6, 1e-3), {"effect": "slow", "speed": 0.6, "repair": 3600.0}),
        (MeasuredFailure("link", "l", 1.0, 2e-3), {"effect": "stall", "stall": 2e-3, "repair": None}),
    ],
)
def test_what_was_measured_decides_the_effect(failure: MeasuredFailure, expected: dict[str, Any]) -> None:
    found = settled(SECTION, failure, 7)
    assert {key: getattr(found, key) for key in expected} == expected
    assert found.count == 7
    assert settled(SECTION.model_copy(update={"count": 3}), failure, 7).count == 3


def test_a_host_without_its_nic_is_replaced() -> None:
    nic = SECTION.model_copy(update={"part": "nic"})
    found = settled(nic, MeasuredFailure("nic", "h0's first NIC", 0.0, 0.0, "it failed"), None)
    assert (found.effect, found.repair) == ("replace", 3600.0)


def test_without_traffic_or_such_a_part_nothing_is_measured(tmp_path: Path) -> None:
    with refused(BadInputError, place="small.yaml: traffic", problem="has none to measure"):
        measured(tmp_path, "link", traffic=[])
    with refused(BadInputError, place="cluster.failures[0].part", problem="no links between switches"):
        measured(tmp_path, "link", fabric={"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 4})


def test_failures_of_hosts_are_not_measured(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="packets do not show failures of part host"):
        measured(tmp_path, "host")

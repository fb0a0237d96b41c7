"""Times of checkpoints that are measured with packets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.cli import weft
from weft.drills import checkpoint_times
from weft.drills.checkpoint_times import Line, settled_times
from weft.errors import BadInputError
from weft.goodput import MeasuredCheckpoint
from weft.jobs.models import MODELS
from weft.jobs.parallelism import Parallelism
from weft.jobs.storage.loads import restored_bytes, shard_bytes
from weft.jobs.training_plan import TrainingPlan
from weft.scenario.cluster import CheckpointSection, ClusterSection, RestartSection

FABRIC = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 4, "host_rate": "100Gb/s", "queue_capacity": "4MiB"}
PARALLEL = {"data": 3, "zero": 1}
STORAGE = {
    "storage": [3],
    "devices": 8,
    "block": "1MiB",
    "queue_depth": 4,
    "checkpoint": {"model": "7B", "parallel": PARALLEL, "share": 0.001},
}
RING = {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["4MiB"], "ranks": [0, 1, 2], "data": "lengths"}
LINK_BYTES_PER_S = 100e9 / 8


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_times, "SHARE_BYTES", 256 * 2**20)


def goodput(folder: Path, cluster: dict[str, Any], traffic: list[dict[str, Any]]) -> dict[str, Any]:
    """Return goodput.json of hosts whose storage is behind one link."""
    tree = {
        "name": "small",
        "fabric": FABRIC,
        "transport": {"congestion_control": "swift"},
        "mtu": 4096,
        "int": False,
        "traffic": traffic,
        "cluster": {"failures": [{"part": "host", "mtbf": "20d"}], **cluster},
    }
    path = folder / "small.yaml"
    with path.open("w", encoding="utf-8") as file:
        ruamel.yaml.YAML().dump(tree, file)
    command = ["goodput", str(path), "--histories", "5", "--workers", "1", "--out", str(folder / "out")]
    CliRunner().invoke(weft, command, standalone_mode=False, catch_exceptions=False)
    found: dict[str, Any] = json.loads((folder / "out" / "goodput.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
def test_a_checkpoint_is_saved_and_restored_as_fast_as_the_storages_link(tmp_path: Path) -> None:
    cluster = {"checkpoint": {"measured": "waiting"}, "restart": {"start": "1min", "measured": True}}
    found = goodput(tmp_path, cluster, [STORAGE])["checkpoint"]
    plan = TrainingPlan(MODELS["7B"], Parallelism.model_validate(PARALLEL))
    saved = sum(shard_bytes(plan, rank) for rank in range(3))
    read = sum(sum(restored_bytes(plan, rank).values()) for rank in range(3))
    assert found["size_bytes"] == saved
    assert found["share"] < 0.1
    # The link is busy all the time, with headers of 2 % (82 bytes of 4,178).
    for seconds, size_bytes in ((found["saving_s"], saved), (found["restoring_s"], read)):
        assert 1.0 < seconds / (size_bytes / LINK_BYTES_PER_S) < 1.06
    assert found["slowed_s"] == 0


@pytest.mark.slow
def test_what_is_written_in_the_background_slows_the_traffic(tmp_path: Path) -> None:
    cluster = {"checkpoint": {"cost": "1s", "measured": "background"}}
    found = goodput(tmp_path, cluster, [RING, STORAGE])["checkpoint"]
    assert 0 < found["slowed_s"] < found["saving_s"]
    assert found["restoring_s"] is None


@pytest.mark.parametrize(
    ("traffic", "problem"),
    [
        ([RING], "0 items `storage` have a `checkpoint`"),
        ([STORAGE, STORAGE], "2 items `storage` have a `checkpoint`"),
    ],
)
def test_one_item_is_the_checkpoint(tmp_path: Path, traffic: list[dict[str, Any]], problem: str) -> None:
    with refused(BadInputError, place="small.yaml: traffic", valid="one item, which is measured", problem=problem):
        goodput(tmp_path, {"restart": {"measured": True}}, traffic)


@pytest.mark.parametrize(("measured", "key"), [("waiting", "cost"), ("waiting", "saving"), ("background", "saving")])
def test_times_that_are_measured_are_not_given(tmp_path: Path, measured: str, key: str) -> None:
    with pytest.raises(BadInputError, match="is measured"):
        goodput(tmp_path, {"checkpoint": {"measured": measured, key: "1s"}}, [STORAGE])


def test_measured_times_take_the_place_of_given_ones() -> None:
    found = MeasuredCheckpoint(10**12, saving_s=90.0, slowed_s=4.0, restoring_s=60.0, share=0.01)
    restart = RestartSection.model_validate({"start": "5min", "measured": True})
    waiting = settled_times(ClusterSection(checkpoint=CheckpointSection(measured="waiting"), restart=restart), found)
    assert (waiting.checkpoint.cost, waiting.checkpoint.saving, waiting.restart.start) == (90.0, 0.0, 360.0)
    behind = settled_times(
        ClusterSection(checkpoint=CheckpointSection.model_validate({"cost": "2s", "measured": "background"})), found
    )
    assert (behind.checkpoint.cost, behind.checkpoint.saving) == (6.0, 90.0)
    assert not waiting.is_to_be_measured
    assert not behind.is_to_be_measured


@given(st.floats(0, 1), st.floats(1e-3, 1e3), st.floats(0.01, 0.4))
def test_times_of_shares_lie_on_a_line(fixed_s: float, whole_s: float, share: float) -> None:
    points = [(part, fixed_s + whole_s * part) for part in (share, 2 * share)]
    line = Line.through(points)
    assert line.at(1) == pytest.approx(fixed_s + whole_s)
    assert line.share_of(line.at(0.7)) == pytest.approx(0.7)
    assert Line.through(points[:1]).at(share) == pytest.approx(points[0][1])

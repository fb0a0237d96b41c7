"""`weft goodput`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from weft.cli import weft
from weft.errors import BadInputError

CLUSTER = """
name: small
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 4}
cluster:
  duration: 5d
  spares: 1
  failures:
    - {part: host, mtbf: 20d, repair: 2h}
    - {part: link, mtbf: 50d, effect: stall, stall: 15s}
  checkpoint: {cost: 20s}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(CLUSTER, encoding="utf-8")
    return path


def goodput(*arguments: object) -> Result:
    return CliRunner().invoke(weft, ["goodput", *map(str, arguments)], standalone_mode=False, catch_exceptions=False)


def test_it_says_where_the_time_goes(scenario: Path) -> None:
    said = goodput(scenario, "--histories", 5).stdout
    assert "small: 8 accelerators in 8 hosts, 1 spare hosts, 5d" in said
    assert "kept work" in said
    assert "is the best by Daly's formula" in said


def test_a_page_and_data_are_written(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    goodput(scenario, "--histories", 5, "--out", out)
    found = json.loads((out / "goodput.json").read_text(encoding="utf-8"))
    assert sum(share["mean"] for share in found["spent"].values()) == pytest.approx(1)
    assert found["goodput"] == found["spent"]["kept"]
    intervals = [each["interval_s"] for each in found["intervals"]]
    assert intervals == sorted(intervals)
    assert len(intervals) > 5
    page = (out / "goodput.html").read_text(encoding="utf-8")
    assert "Time that is no kept work" in page
    assert 'src="http' not in page


def test_json_is_the_same_for_a_seed(scenario: Path) -> None:
    first, again = (goodput(scenario, "--histories", 3, "--json").stdout for _ in range(2))
    other = goodput(scenario, "--histories", 3, "--json", "--set", "seed=2").stdout
    assert first == again
    assert first != other


def test_errors_name_file_and_key(scenario: Path) -> None:
    with pytest.raises(BadInputError, match=r"cluster\.failures\[0\]"):
        goodput(scenario, "--set", "cluster.accelerators=64", "--set", "cluster.failures[0].part=switch")
    with pytest.raises(BadInputError, match="unknown key"):
        goodput(scenario, "--set", "cluster.spare=3")
    with pytest.raises(BadInputError, match=r"cluster\.failures"):
        goodput(scenario, "--set", "cluster.failures=[]")

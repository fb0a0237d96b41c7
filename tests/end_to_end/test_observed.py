"""What hosts record under the real clock is what they record under the virtual one, but for the times."""

from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader

from weft.recording.tables import Names, row_count
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario


def run(clock: str, directory: Path):
    scenario = {
        "clock": clock,
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "traffic": [{"collective": "allreduce", "sizes": ["16KiB"]}, {"incast": "h0"}],
        "observe": {"flows": True, "timelines": True, "int": "all", "captures": ["p0l0:1", "h1:0"]},
    }
    directory.mkdir()
    result = run_scenario(parse_scenario(scenario), directory=directory)
    result.save(directory)
    return result.observations.tables


def rows(table, *columns):
    values = [table[name].texts() if isinstance(table[name], Names) else table[name].tolist() for name in columns]
    return sorted(zip(*values, strict=True))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("observed")
    return directory, {clock: run(clock, directory / clock) for clock in ("real", "virtual")}


def test_the_same_messages_and_steps_are_recorded(recorded):
    _, tables = recorded
    for name, columns in (
        ("flows", ("source", "destination", "plane", "run", "step", "size_bytes", "ideal_ps", "status")),
        ("timeline", ("host", "run", "step", "kind", "peer", "plane", "size_bytes")),
    ):
        assert rows(tables["real"][name], *columns) == rows(tables["virtual"][name], *columns), name


def test_no_message_is_faster_than_alone(recorded):
    for clock, tables in recorded[1].items():
        flows = tables["flows"]
        assert (flows["end_ps"] - flows["start_ps"] >= flows["ideal_ps"]).all(), clock


def test_int_and_captures_are_not_empty(recorded):
    directory, tables = recorded
    assert row_count(tables["real"]["int"]) > 0
    for name in ("p0l0-1", "h1-0"):
        frames = list(RawPcapNgReader(str(directory / "real" / f"{name}.pcapng")))
        assert {meta.direction for _, meta in frames} == {1, 2}
        assert frames[0][1].ifname.decode() == name.replace("-", ":")

"""`weft collective` and `weft run`: repetitions, warm-up, and the note on the first collective."""

import json

import pytest
from click.testing import CliRunner

from weft.cli import weft

COMMAND = [
    "collective", "allreduce", "--clock", "virtual", "--algorithm", "ring", "--sizes", "64K", "--planes", "1",
    "--leaves", "2", "--spines", "2", "--data", "lengths",
]  # fmt: skip
INCAST = """
name: no-collective
clock: virtual
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 3}
traffic:
  - incast: h0
"""


def output_of(*arguments):
    result = CliRunner().invoke(weft, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_repetitions_are_a_row_with_mean_least_and_largest():
    text = output_of(*COMMAND, "-n", 3, "-w", 2)
    header = next(line for line in text.splitlines() if "size" in line)
    assert header.split() == ["size", "mean", "least", "largest", "algbw", "busbw", "retransmitted"]
    assert len([line for line in text.splitlines() if line.split()[:1] == ["ring"]]) == 1
    assert "of 3 repetitions, after 2 to warm up" in text


def test_one_run_has_one_time():
    text = output_of(*COMMAND)
    header = next(line for line in text.splitlines() if "size" in line)
    assert header.split() == ["size", "time", "algbw", "busbw", "retransmitted"]
    assert "repetitions" not in text
    assert "first collective done after" in text


def test_json_has_every_repetition():
    (result,) = json.loads(output_of(*COMMAND, "--repetitions", 4, "--json"))["collectives"]
    assert len(result["times_ps"]) == 4
    assert result["least_time_ps"] == min(result["times_ps"]) <= result["time_ps"] <= result["largest_time_ps"]


@pytest.mark.parametrize("option", [("-n", 0), ("-w", -1)])
def test_numbers_out_of_range_are_refused(option):
    result = CliRunner().invoke(weft, [*COMMAND, *map(str, option)])
    assert result.exit_code == 2


def test_a_run_without_a_collective_says_nothing_of_a_first_one(tmp_path):
    scenario = tmp_path / "incast.yaml"
    scenario.write_text(INCAST)
    text = output_of("run", scenario, "--out", tmp_path / "run")
    assert "first collective" not in text
    assert "all in" in text
    assert "first_collective_done" not in json.loads((tmp_path / "run" / "wall_times.json").read_text())
    assert "h1 → h0" in text
    rows = (tmp_path / "run" / "pattern-0-flows.csv").read_text().splitlines()
    assert rows[0] == "flow,source,destination,plane,size_bytes,start_ps,completion_ps,retransmitted_packets"
    assert len(rows) == 3


def test_a_barrier_is_one_row_and_has_no_size():
    command = ["collective", "barrier", "--clock", "virtual", "--algorithm", "in-network", "--planes", "1"]
    assert len(json.loads(output_of(*command, "--json"))["collectives"]) == 1
    result = CliRunner().invoke(weft, [*command, "--sizes", "4K"])
    assert str(result.exception) == "--sizes: a barrier has no size (valid: leave sizes out)"

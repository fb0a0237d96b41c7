"""Distributions of flow sizes from files: what they say, what is refused, and a run with one.

WEFT_HPCC_CLONE names a local clone of alibaba-edu/High-Precision-Congestion-Control, whose distributions are read.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import load_scenario, parse_scenario
from weft.traffic.flow_sizes import FlowSizes, flow_sizes

EXAMPLE = ROOT / "examples" / "traces" / "sizes.yaml"
CLONE = Path(os.environ.get("WEFT_HPCC_CLONE", ""))


def scenario(**workload: object) -> object:
    fabric = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2, "planes": 1}
    return parse_scenario({"fabric": fabric, "traffic": [{"workload": {"load": 0.3, "duration": 10**8, **workload}}]})


def test_the_example_is_read_beside_its_scenario_and_runs() -> None:
    result = run_scenario(load_scenario(EXAMPLE))
    assert result.ok
    (workload,) = result.workloads
    assert workload.flow_sizes == "sizes"
    sizes = FlowSizes.from_file(EXAMPLE.with_name("sizes.txt"))
    assert sizes == FlowSizes("sizes", (0, 4000, 64000, 1000000), (0, 50, 90, 100))
    assert sizes.mean_bytes == 0.5 * 2000 + 0.4 * 34000 + 0.1 * 532000


REFUSED = {
    "no pair": ("0 0\n1 2 3\n4 100\n", "line 2: '1 2 3' is not a pair of bytes and percent", ""),
    "no number": ("0 0\nx 100\n", "line 2: 'x 100' is not a pair of bytes and percent", ""),
    "not a number": ("0 0\nnan 50\n9 100\n", "line 2: 'nan' bytes", "0 to 2147483648"),
    "an infinite size": ("0 0\ninf 100\n", "line 2: 'inf' bytes", "0 to 2147483648"),
    "a share of no number": ("0 0\n5 nan\n9 100\n", "line 2: 'nan' percent", "0 to 100"),
    "above all": ("0 0\n5 101\n", "line 2: '101' percent", "0 to 100"),
    "a smaller size": ("0 0\n9 50\n5 100\n", "line 3: 5 bytes", "9 or more, as in the line before"),
    "the same share": ("0 0\n5 50\n9 50\n10 100\n", "line 3: 50 percent", "above 50, as in the line before"),
    "shares up to 1": ("0 0\n5 0.5\n9 1\n", "percents from 0 to 1", "0 to 100"),
    "one point": ("0 0\n", "1 sizes and 1 percents", "2 or more points"),
    "nothing": ("# nothing\n", "0 sizes and 0 percents", "2 or more points"),
    "too much": ("#" * 2_000_000, "is too large for a distribution", "up to 1,048,576 B"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_distributions_that_cannot_be_are_refused_by_line(tmp_path: Path, case: str) -> None:
    text, problem, valid = REFUSED[case]
    path = tmp_path / "sizes.txt"
    path.write_text(text)
    with pytest.raises(BadInputError) as raised:
        scenario(flow_sizes_file=str(path))
    said = str(raised.value)
    assert f"traffic[0].workload.flow_sizes_file: {path}" in said
    assert problem in said
    assert f"(valid: {valid})" in said or not valid


def test_one_distribution_is_given() -> None:
    with refused(
        BadInputError, place="scenario: traffic[0].workload", valid="one of the two", problem="has neither of"
    ):
        scenario()
    with refused(BadInputError, place="scenario: traffic[0].workload", valid="one of the two", problem="has both of"):
        scenario(flow_sizes="websearch", flow_sizes_file="x")
    with pytest.raises(BadInputError, match=r"none.txt cannot be read: No such file"):
        scenario(flow_sizes_file="/none.txt")
    with pytest.raises(BadInputError, match="/dev/zero is not a file"):
        scenario(flow_sizes_file="/dev/zero")


@pytest.mark.skipif(
    not os.environ.get("WEFT_HPCC_CLONE"),
    reason="WEFT_HPCC_CLONE names no clone of alibaba-edu/High-Precision-Congestion-Control",
)
@pytest.mark.parametrize(
    ("file", "own"), [("WebSearch_distribution", "websearch"), ("FbHdp_distribution", "fb_hadoop")]
)
def test_public_distributions_are_those_that_come_with_weft(file: str, own: str) -> None:
    sizes = FlowSizes.from_file(CLONE / "traffic_gen" / f"{file}.txt")
    assert (sizes.sizes_bytes, sizes.percents) == (flow_sizes(own).sizes_bytes, flow_sizes(own).percents)

"""`weft calibrate` prints residuals, writes a scenario that runs as the model did, and refuses what does not fit."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from tests.calibration.nccl_tests import EXAMPLE, POD
from weft.cli import weft
from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import Change, load_scenario

LOGS = (str(EXAMPLE / "two_hosts.log"), str(EXAMPLE / "one_host.log"))


class Fitted(NamedTuple):
    """What the command printed and wrote; `said` on stderr."""

    said: str
    found: dict[str, Any]
    scenario: Path
    picture: Path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(weft, ["calibrate", *arguments])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("fitted")
    output, plot = folder / "fitted.yaml", folder / "curves.svg"
    done = run(*LOGS, "--scenario", str(POD), "--output", str(output), "--plot", str(plot), "--json")
    assert done.exit_code == 0, done.output
    return Fitted(done.stderr, json.loads(done.stdout), output, plot)


def test_the_fitted_scenario_runs_as_the_model_did(fitted: Fitted) -> None:
    rows = [row for table in fitted.found["tables"] for row in table["rows"]]
    sizes = [row["size_bytes"] for row in fitted.found["tables"][0]["rows"]]
    changes = [
        Change(key, value, "--set")
        for number in (0, 1)
        for key, value in ((f"traffic[{number}].sizes", sizes), (f"traffic[{number}].data", "lengths"))
    ]
    found = run_scenario(load_scenario(fitted.scenario, [*changes, Change("clock", "virtual", "--set")]))
    assert [each.time_ps for each in found.collectives] == [row["after_ps"] for row in rows]


def test_each_run_says_its_largest_residual_in_a_short_line(fitted: Fitted) -> None:
    lines = [line for line in fitted.said.splitlines() if line.startswith("· run ")]
    assert len(lines) == fitted.found["runs"]
    found = [re.fullmatch(r"· run (\d+): largest residual ([\d.]+) %", line) for line in lines]
    assert [each and int(each[1]) for each in found] == list(range(1, len(lines) + 1))
    assert max(map(len, lines)) <= 80
    rows = [row for table in fitted.found["tables"] for row in table["rows"]]
    before = max(abs(row["before_ps"] / row["measured_ps"] - 1) for row in rows)
    assert found[0]
    assert float(found[0][2]) == pytest.approx(100 * before, abs=0.051)


def test_scatter_of_the_measurements_bounds_the_residuals(fitted: Fitted) -> None:
    rows = [row for table in fitted.found["tables"] for row in table["rows"]]
    assert max(abs(row["residual"]) for row in rows) < 0.03
    assert sum(row["held_out"] for row in rows) == 6


def test_the_written_scenario_keeps_comments_and_layout(fitted: Fitted) -> None:
    before, written = POD.read_text().splitlines(), fitted.scenario.read_text().splitlines()
    changed = [line for line in before if line not in written]
    # The lines of fitted keys alone; a new key has a line more.
    assert [line.partition(":")[0].strip() for line in changed] == ["scale_up", "per_message_overhead"]
    assert len(written) == len(before) + 1
    for line in changed:
        assert any(each.endswith(f"   #{line.partition('#')[2]}") for each in written)


def test_the_picture_is_that_of_the_page(fitted: Fitted) -> None:
    drawn = fitted.picture.read_text()
    assert (ROOT / "docs" / "pictures" / "calibrate.svg").read_text() == drawn
    circles = [each for each in ET.fromstring(drawn).iter() if each.tag.endswith("circle")]
    # A point for each size, and two in each legend.
    assert len(circles) == 2 * 11 + 2 * 2


def test_a_table_is_printed_with_its_remarks(tmp_path: Path) -> None:
    plot = tmp_path / "curves.html"
    done = run(
        LOGS[1], "--scenario", str(POD), "--keys", "fabric.scale_up.latency", "--most", "16K", "--plot", str(plot)
    )
    assert done.exit_code == 0, done.output
    assert "allreduce by ring, 4 ranks on 1 host" in done.stdout
    assert "held out" in done.stdout
    assert "8 sizes left out: above 16KiB (--most)" in done.stdout
    assert "held-out sizes: median residual" in done.stdout
    assert "<svg" in plot.read_text()


def test_paths_of_a_scenario_are_kept_valid_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    source = ROOT / "examples" / "dual_homed.json"
    (tmp_path / "there" / "net.json").write_text(source.read_text())
    (tmp_path / "there" / "net.yaml").write_text(
        "fabric: {kind: file, path: net.json}  # ours\ntraffic: [{collective: allreduce, algorithms: [ring]}]\n"
    )
    ranks = load_scenario(tmp_path / "there" / "net.yaml").fabric.rank_count
    log = tmp_path / "all_reduce_perf.log"
    lines = [f"# Rank {rank} Pid 1 on h{rank} device 0" for rank in range(ranks)]
    rows = [f"{size} {size // 4} float sum -1 50 {size / 50e3:.2f} 0 0" for size in (4096, 8192, 16384)]
    log.write_text("\n".join([*lines, "# size count type redop root time algbw busbw #wrong", *rows, ""]))
    output = tmp_path / "fitted.yaml"
    done = run(
        str(log), "--scenario", str(tmp_path / "there" / "net.yaml"), "--keys", "nic.per_message_overhead",
        "--output", str(output), "--set", "traffic[0].sizes=[8KiB]",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert load_scenario(output).nic.per_message_overhead > 0
    assert "# ours" in output.read_text()
    assert "8KiB" in output.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", str(POD)], "is read by the same command"),
        (["--plot", LOGS[0]], "cannot draw"),
        (["--output", "no-such-folder/x.yaml"], "no-such-folder is no directory"),
        (["--least", "much"], "--least"),
        (["--hold-out", "1/0"], "1/0 leaves no size to fit"),
        (["--set", "fabric.hosts_per_leaf=3"], "allreduce of 8 ranks was measured"),
        (["--collective", "alltoall"], "alltoall of 8 ranks was measured"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(arguments: list[str], said: str) -> None:
    done = run(*LOGS, "--scenario", str(POD), *arguments)
    assert isinstance(done.exception, Exception)
    assert said in str(done.exception)

"""docs/tcp.md shows what its example and its code print."""

import contextlib
import csv
import io
import re
import statistics
from collections import Counter
from pathlib import Path

from click.testing import CliRunner

from weft.cli import weft
from weft.paths import ROOT
from weft.results.model import Phase
from weft.results.results_file import read_results

PAGE = (ROOT / "docs" / "tcp.md").read_text(encoding="utf-8")


def test_the_page_shows_what_the_example_prints(tmp_path: Path) -> None:
    example = ROOT / "examples" / "tcp.yaml"
    done = CliRunner().invoke(weft, ["run", "--out", str(tmp_path), str(example)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    begin = next(number for number, line in enumerate(lines) if "TCP flows, " in line)
    end = next(number for number, line in enumerate(lines) if line == "planes")
    assert "\n".join(lines[begin:end]).strip() in PAGE
    newreno, cubic, dctcp = (queue_depths(tmp_path, phase) for phase in read_results(tmp_path / "results.json").phases)
    kilobytes = [round(statistics.median(depths) / 1000) for depths in (newreno, cubic, dctcp)]
    assert kilobytes == [454, 475, 97]
    assert f"its median is {kilobytes[0]} kB and {kilobytes[1]} kB" in PAGE
    assert f"its median is {kilobytes[2]} kB, 99 % of the time it is below 102 kB" in PAGE
    assert sorted(dctcp)[len(dctcp) * 99 // 100] < 102_000


def queue_depths(directory: Path, phase: Phase) -> list[int]:
    """The depths of the port's queues, of all classes, from 10 ms after the start of an item on."""
    depths: Counter[int] = Counter()
    with (directory / "queues.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            depths[int(row["time_ps"])] += int(row["queue_bytes"])
    return [depth for time, depth in depths.items() if 10**10 <= time - phase.start_ps <= 10**11]


def test_the_page_s_program_prints_what_it_says() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert printed.getvalue().strip() == program.rsplit("# ", 1)[1].strip()

"""docs/performance.md is the committed run's figures in the template, and its benchmarks print what it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import bench_turns
import gate_table
import performance as page
import pytest
from figures import Figure, figures_by_full_name, quantity
from peers.adapters.htsim_uec import KIND as HTSIM

from tests.benchmarks.peer_programs import stand_in
from weft.paths import ROOT

TEMPLATE = page.TEMPLATE.read_text(encoding="utf-8")
TABLE = gate_table.Table.read(gate_table.TABLE)
NETWORK = "veth"
"""The benchmark that makes a network namespace."""


def measured(*figures: Figure, missing: str = "") -> page.Measured:
    return page.Measured("benchmarks/bench_hosts.py", 1.5, figures, missing)


def test_the_committed_page_is_current() -> None:
    run = page.Run.read(ROOT / page.RESULTS)
    assert (ROOT / page.PAGE).read_text(encoding="utf-8") == page.render(run, TEMPLATE, TABLE), "make generated"


def test_the_committed_run_is_a_whole_one() -> None:
    run = page.Run.read(ROOT / page.RESULTS)
    assert list(run.measured) == list(page.DECLARED)
    assert [name for name, each in run.measured.items() if bool(each.figures) == bool(each.missing)] == []
    assert "small sizes" not in run.machine["run"]


def test_every_benchmark_is_on_the_page() -> None:
    text = (ROOT / page.PAGE).read_text(encoding="utf-8")
    assert [path.name for path in (ROOT / "benchmarks").glob("bench_*.py") if path.name not in text] == []


def test_readme_has_the_speeds_of_the_pages() -> None:
    measured = page.Run.read(ROOT / page.RESULTS).measured
    ratios = {each.name: each.ratio for each in measured["peers"].figures if each.ratio is not None}
    (incast,) = (ratio for name, ratio in ratios.items() if name.startswith("incast"))
    others = [ratio for name, ratio in ratios.items() if not name.startswith("incast")]
    websearch_s = next(each.value for each in measured["websearch hpcc"].figures if each.name.endswith("hpcc"))
    (ns3_s,) = re.findall(r"ns-3 takes (\d+) to (\d+) s", TEMPLATE)
    bmv2 = [int(each) for each in re.findall(r"\| (\d+) x \|", (ROOT / "docs" / "switch.md").read_text("utf-8"))]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| {min(others):.2g} to {max(others):.2g}, incast {incast:.2g} (" in readme
    assert f"| {' to '.join(f'{float(each) / websearch_s:.0f}' for each in ns3_s)} ([WebSearch]" in readme
    assert f"| {min(bmv2)} to {max(bmv2)} per frame (" in readme


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.mininet) if name == NETWORK else name for name in page.DECLARED],
)
def test_each_benchmark_prints_what_the_page_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == NETWORK and os.geteuid() != 0:
        pytest.skip("needs root for network namespaces")
    monkeypatch.setenv(page.OTHER_VARIABLE, str(ROOT))
    monkeypatch.setenv(HTSIM.variable, str(stand_in(tmp_path)))
    declared = page.DECLARED[name]
    found = page.run_one(declared, quick=True)
    assert found.missing == ""
    table = page.render(page.Run({}, {name: found}), f"{{{{table: {name}}}}}", TABLE)
    for figure in page.shown(declared, found.figures):  # PageError for a pattern without a figure
        assert f" {quantity(figure.value, figure.unit)} |" in table


def test_a_pattern_without_a_figure_is_an_error() -> None:
    declared = page.Declared("bench_x.py", "", "", ("rate", "*: peak"))
    printed = [Figure("rate", 1.0, "1/s"), Figure("rate: memory", 2.0, "GiB")]
    with pytest.raises(page.PageError, match=r"printed no figure '\*: peak' \(it printed: rate; rate: memory"):
        page.shown(declared, printed)
    with pytest.raises(page.PageError, match=r"bench_x.py printed no figures"):
        page.shown(page.Declared("bench_x.py", "", ""), [])


def test_patterns_choose_figures_by_full_name() -> None:
    printed = [
        {"name": "64 ranks", "value": 123456.0, "unit": "us"},
        {"name": "  inside", "value": 1.23456, "unit": "s", "beside": "", "ratio": 0.123456, "reached": None},
        {"name": "    nested", "value": 3.0, "unit": "s"},
    ]
    figures = figures_by_full_name(printed)
    assert [each.name for each in figures] == ["64 ranks", "64 ranks: inside", "64 ranks: nested"]
    declared = page.Declared("bench_x.py", "", "", ("* ranks", "*: inside"), label="slice")
    assert page.shown(declared, figures) == [
        Figure("slice, 64 ranks", 123456.0, "us"),
        Figure("slice, 64 ranks: inside", 1.23456, "s", ratio=0.123456),
    ]
    assert page.shown(page.Declared("bench_x.py", "", ""), figures) == figures


def test_what_the_machine_lacks_is_said_on_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(page.OTHER_VARIABLE, raising=False)
    monkeypatch.setenv(HTSIM.variable, str(tmp_path / "none"))
    run = page.Run({}, {name: page.run_one(page.DECLARED[name], quick=True) for name in ("turns", "peers")})
    text = page.render(run, "{{table: turns}}\n{{table: peers}}\n{{table: hosts}}", TABLE)
    assert "Not measured in this run: no other checkout is named (`--other` or WEFT_OTHER)." in text
    assert f"Not measured in this run: WEFT_HTSIM={tmp_path / 'none'} is no executable" in text
    assert "`bench_hosts.py` was not part of this run." in text
    monkeypatch.setenv(page.OTHER_VARIABLE, str(tmp_path))
    assert "no checkout of Weft" in page.run_one(page.DECLARED["turns"], quick=True).missing


def test_a_table_has_figures_ratios_and_goals() -> None:
    run = page.Run(
        {"memory": "1 GiB"},
        {
            "hosts": measured(
                Figure("rate", 2_862_000, "packets/s", "null", 0.436, 0.4),
                Figure("rate: time", 3.5, "s", goal=2.0, at_most=True),
            )
        },
    )
    counted = []
    for (name, count), goal in page.COUNT_GOALS.items():
        value = TABLE.runs[name].counts[count]
        verdict = "reached" if value <= goal else "**missed**"
        counted.append(
            f"| counts | {name}: {count} of a packet-hop | {quantity(value, '')} | ≤ {quantity(goal, '')}, {verdict} |"
        )
    assert page.render(run, "{{table: hosts}}\n\n{{goals}}\n\n{{machine}}", TABLE).splitlines() == [
        "| | measured | ratio to | goal |",
        "| --- | --- | --- | --- |",
        "| rate | 2.86 M packets/s | 0.436 × null | ≥ 0.4 ×, reached |",
        "| – time | 3.5 s | | ≤ 2 s, **missed** |",
        "",
        "| benchmark | figure | measured | goal |",
        "| --- | --- | --- | --- |",
        "| hosts | rate | 0.436 × null | ≥ 0.4 ×, reached |",
        "| hosts | rate: time | 3.5 s | ≤ 2 s, **missed** |",
        *counted,
        "",
        "| | |",
        "| --- | --- |",
        "| memory | 1 GiB |",
    ]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{tables}}", r"\{\{tables\}\} \(valid: \{\{table: NAME, …\}\}, machine, goals, commands, counts, parts\)"),
        ("{{goals: hosts}}", r"\{\{goals: hosts\}\} \(valid"),
        ("{{table: hostz}}", r"no benchmark 'hostz' \(valid: turns, peers, "),
        ("{{goals}}", "no table has hosts"),
    ],
)
def test_a_template_that_does_not_fit_is_an_error(template: str, message: str) -> None:
    run = page.Run({}, {"hosts": measured(Figure("rate", 1.0, "1/s"))})
    with pytest.raises(page.PageError, match=message):
        page.render(run, template, TABLE)


def test_a_file_without_a_run_is_an_error(tmp_path: Path) -> None:
    for text in ("", "{}", '{"machine": {}, "measured": {"hosts": {"figure": []}}}'):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(page.PageError, match=r"run\.json: no results of a run"):
            page.Run.read(tmp_path / "run.json")


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = page.Run({"Python": "3.11"}, {"hosts": measured(Figure("rate", 1.0, "1/s", "null", 0.5, 0.4, at_most=True))})
    run.write(tmp_path / "there" / "run.json")
    assert page.Run.read(tmp_path / "there" / "run.json") == run


def test_a_benchmark_that_fails_leaves_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(page.DECLARED, "hosts", page.Declared("bench_hosts.py", "", "--queue-pairs none"))
    monkeypatch.setattr(page, "FAILED", tmp_path / "failed.json")
    monkeypatch.setattr(sys, "argv", ["performance", "--quick", "--only", "hosts", "--output", str(tmp_path)])
    assert page.main() == 1
    assert "hosts: benchmarks/bench_hosts.py --queue-pairs none: exit code 2" in capsys.readouterr().err
    assert not (tmp_path / page.PAGE).exists()
    assert json.loads((tmp_path / "failed.json").read_text())["measured"] == {}


def test_a_part_is_not_written_into_the_repository() -> None:
    for arguments in (["--quick"], ["--only", "hosts"]):
        done = subprocess.run(
            [sys.executable, ROOT / "benchmarks" / "performance.py", *arguments], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "--quick and --only need --output" in done.stderr


def test_parts_of_a_packet_hop_are_all_of_its_instructions() -> None:
    lines = [
        line.strip("| ").split(" | ") for line in page.render(page.Run({}, {}), "{{parts}}", TABLE).splitlines()[2:]
    ]
    columns = list(zip(*lines, strict=True))
    total = next(number for number, name in enumerate(columns[0]) if name == "**all instructions**")
    for column in columns[1:]:
        values = [float(value.replace(",", "")) for value in column]
        assert sum(values[:total]) == pytest.approx(values[total], abs=len(values))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2_862_311, "hops/s", "2.86 M hops/s"),
        (462e6, "int32/s", "462 M int32/s"),
        (13.5e9, "int32/s", "13.5 G int32/s"),
        (1e9, "", "1.00 G"),
        (2_500_000, "1/s", "2.50 M/s"),
        (12_345.6, "ns", "12,346 ns"),
        (0.4356, "×", "0.436 ×"),
        (0.0, "s", "0 s"),
    ],
)
def test_quantities_have_three_digits(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_the_machine_is_described() -> None:
    assert page.machine_properties().keys() == {"processor", "caches", "memory", "kernel", "compiler", "Python"}
    assert all(page.machine_properties().values())


def test_turns_name_the_earlier_figure_with_its_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"there": {"rate": Figure("rate", 2e6, "1/s")}, "here": {"rate": Figure("rate", 3e6, "1/s")}}
    monkeypatch.setattr(bench_turns, "run", lambda checkout, *_, **__: figures["here" if checkout == ROOT else "there"])
    assert bench_turns.compare(Path("there"), ["hops"], 2, quick=True) == [Figure("rate", 3e6, "1/s", "2.00 M/s", 1.5)]

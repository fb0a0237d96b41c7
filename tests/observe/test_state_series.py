"""What switches hold as series over a run (`observe.state_series`): rows, limits, the page, `weft diff` of moments."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.clocks.environment import require_for
from weft.compiler import compile_file
from weft.errors import BadInputError, EnvironmentLacksError
from weft.quantities.readable import format_time
from weft.recording import state_samples
from weft.recording.reading import read_table
from weft.recording.state_samples import GONE, StateSamples
from weft.recording.state_series import state_of_series
from weft.recording.tables import Names, Table
from weft.report.run_directory import RunDirectory
from weft.report.state_figures import state_figures
from weft.run import state_series
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import Change, load_scenario
from weft.switch.backend import ActionCall, LpmMatch, TableEntry
from weft.switch.bmv2json import load_program
from weft.switch.debug.series_items import Item, SeriesError
from weft.switch.debug.states import FabricState
from weft.switch.native import NativeSwitch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "debugging"
SERIES = EXAMPLES / "series.yaml"
TX = "FabricEgress.telemetry.port_tx_bytes"
LPM = "FabricIngress.forwarding.ipv4_lpm"


def run(directory: Path, scenario: Path = SERIES, **changes: Any) -> Any:
    directory.mkdir()
    given = [Change(name.replace("__", "."), value, "here") for name, value in changes.items()]
    result = run_scenario(run_spec(load_scenario(scenario, given)), directory=directory)
    result.save(directory)
    return result


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("series") / "run"
    run(path, observe__state_at=["2us", "5us"])
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with (path / "state_series.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_samples_are_what_switches_held_at_the_moment(directory: Path) -> None:
    for moment in ("2us", "5us"):
        whole = FabricState.model_validate_json((directory / f"state-{moment}.json").read_text())
        series = state_of_series(directory, whole.time_ps)
        assert list(series.switches) == list(whole.switches)
        for name, state in series.switches.items():
            held = whole.switches[name]
            chosen = {key: value for key, value in held.registers.get(TX, {}).items() if int(key) <= 3}
            assert state.registers.get(TX, {}) == chosen
            assert state.counters.get(LPM, {}) == held.counters.get(LPM, {})
            assert state.entries[LPM] == {"": len(held.entries[LPM])}
    assert state_of_series(directory, 5 * 10**6).switches["p0l0"].registers[TX]["1"] == 49680


def test_the_docs_show_how_the_table_begins(directory: Path) -> None:
    page = (EXAMPLES.parents[1] / "docs" / "debugging.md").read_text(encoding="utf-8")
    shown = page.split("`series/state_series.csv` begins with:\n\n```text\n")[1].partition("```")[0]
    assert (directory / "state_series.csv").read_text().startswith(shown)
    assert shown.count("\n") > 3


def test_a_row_stands_only_where_a_value_changed(directory: Path) -> None:
    last: dict[tuple[str, ...], str] = {}
    times = []
    for row in rows_of(directory):
        series = row["switch"], row["object"], row["key"], row["quantity"]
        assert last.get(series, "0") != row["value"]
        last[series] = row["value"]
        times.append(int(row["time_ps"]))
    assert times == sorted(times)
    assert {time for time in times[:-1] if time % 10**6} <= {times[-1]}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_is_the_same_with_series(directory: Path, tmp_path: Path, workers: int) -> None:
    found = []
    for name, items in (("plain", []), ("observed", load_scenario(SERIES).options.observe.state_series)):
        run(tmp_path / name, workers=workers, observe__state_series=items)
        results = json.loads((tmp_path / name / "results.json").read_text())
        del results["made_by"]  # which says what was observed
        results.pop("warnings", None)  # of an interval without anything to sample
        found.append(results)
    assert found[0] == found[1]
    assert not (tmp_path / "plain" / "state_series.csv").exists()
    file = "state_series.csv"
    assert (tmp_path / "observed" / file).read_text() == (directory / file).read_text()


def test_parquet_has_the_same(directory: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    run(tmp_path / "run", observe__format="parquet")
    for moment in (10**6, 7 * 10**6, 10**9):
        assert state_of_series(tmp_path / "run", moment) == state_of_series(directory, moment)


def test_the_page_draws_them(directory: Path) -> None:
    figures = state_figures(RunDirectory.read(directory))
    assert list(figures) == ["state-registers", "state-counted", "state-entries"]
    curves = {curve["name"]: curve for curve in figures["state-registers"]["curves"]}
    curve = curves["p0l0 port_tx_bytes[1]"]
    assert (curve["x"][0], curve["y"][0]) == (0.0, 0.0)
    assert curve["y"][curve["x"].index(2.0)] == 12424
    entries = {curve["name"]: set(curve["y"]) for curve in figures["state-entries"]["curves"]}
    assert entries["p0l0 ipv4_lpm"] == {3.0}


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (
            ["port_tx_byte"],
            "no table, counter, meter or register 'port_tx_byte'; did you mean 'port_tx_bytes'",
        ),
        (["port_tx_bytes[512]"], f"'{TX}' has no cell 512 \\(valid: 0 to 511\\)"),
        (["port_tx_bytes[3..1]"], "the last cell is before the first"),
        (["ipv4_lpm[3]"], f"'{LPM}' is a table: it has entries, not cells"),
        (["*"], r"values a sample are too many \(at most 20000\); .* name cells, such as NAME\[0\.\.7\]"),
        (["a[1"], "is not a name or pattern"),
    ],
)
def test_what_cannot_be_sampled_is_refused(tmp_path: Path, items: list[str], problem: str) -> None:
    with pytest.raises(BadInputError, match=problem):
        run(tmp_path / "run", observe__state_series=items)


def test_the_real_clock_samples_none() -> None:
    spec = run_spec(load_scenario(SERIES, [Change("clock", "real", "x")]))
    with refused(EnvironmentLacksError, problem="state_series are recorded under"):
        require_for(spec.fabric, spec.options)


def test_what_is_beyond_the_limits_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_samples, "MOST_ROWS", 10)
    result = run(tmp_path / "rows")
    assert len(rows_of(tmp_path / "rows")) == 10
    assert result.rows_lost > 100
    monkeypatch.setattr(state_series, "MOST_VALUES_READ", 300)
    result = run(tmp_path / "read")
    assert result.warnings == [
        "observe.state_series ends at 3 µs, when it had read as much as a run may: name fewer cells, or a longer "
        "state_interval."
    ]


# ---- `weft diff`


def weft_diff(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(weft, ["diff", *map(str, arguments)])
    return (
        result.exit_code,
        result.output if result.exception is None else f"{result.output}{result.exception}",
    )


def test_two_moments_of_series_are_compared(directory: Path) -> None:
    code, output = weft_diff(f"{directory}@2us", f"{directory}@5us", "--switch", "p0l0")
    assert code == 0
    assert output.splitlines() == [
        f"~ p0l0 {TX}[1] 12424 → 49680",
        f"+ p0l0 {TX}[2] 216",
        f"~ p0l0 {LPM}[10.0.0.1/32] 11 packets, 12424 bytes → 84 packets, 94800 bytes",
        f"+ p0l0 {LPM}[10.0.0.2/32] 2 packets, 216 bytes",
    ]


def test_moments_that_are_none_are_refused(directory: Path, tmp_path: Path) -> None:
    series, file = f"{directory}@2us", directory / "state-2us.json"
    assert "name two files, or two moments of series" in weft_diff(series, file)[1]
    for text in ("nothing.json", f"{tmp_path}@soon", f"{tmp_path / 'none'}@2us"):
        code, output = weft_diff(series, text)
        assert code == 2
        assert f"'{text}'" in output.replace("\n", " ")
    assert f"{tmp_path}: has no state_series" in weft_diff(series, f"{tmp_path}@2us")[1]


def test_a_moment_after_the_last_change_is_compared_and_named(directory: Path) -> None:
    result = CliRunner().invoke(weft, ["diff", f"{directory}@2us", f"{directory}@5s", "--switch", "p0l0"])
    assert result.exit_code == 0
    times_ps = [
        int(row.split(",")[0]) for row in (directory / "state_series.csv").read_text(encoding="utf-8").splitlines()[1:]
    ]
    assert result.stderr == (f"{directory}: the last change in its series is at {format_time(max(times_ps))}\n")


def test_what_another_program_lacks_was_removed(tmp_path: Path) -> None:
    rows = ["0,p0l0,cells,1,value,7", "0,p0l0,hosts,,entries,5", "0,p0l0,port,1,packets,3"]
    gone = [f"1000000{row[1:-1]}-1" for row in rows]
    text = "\n".join(["time_ps,switch,object,key,quantity,value", *rows, *gone, ""])
    (tmp_path / "state_series.csv").write_text(text)
    _, output = weft_diff(f"{tmp_path}@0us", f"{tmp_path}@1us")
    assert output.splitlines() == [
        "- p0l0 hosts entries 5",
        "- p0l0 cells[1] 7",
        "- p0l0 port[1] 3 packets",
    ]


def test_a_damaged_table_is_refused(directory: Path, tmp_path: Path) -> None:
    text = (directory / "state_series.csv").read_text()
    (tmp_path / "state_series.csv").write_text(text.replace(",12424\n", ",twelve\n", 1))
    with refused(BadInputError, place="state_series.csv:6", problem="is no whole number"):
        read_table(tmp_path, "state_series")


# ---- one switch

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
struct headers { ethernet_t ethernet; }
struct metadata { bit<32> colour; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    register<bit<128>>(4) wide;
    meter(2, MeterType.packets) policer;
    direct_counter(CounterType.packets) hits;
    action send(bit<9> port) { standard_metadata.egress_spec = port; }
    table hosts {
        key = { hdr.ethernet.destination: lpm; }
        actions = { send; NoAction; }
        counters = hits;
        default_action = NoAction();
    }
    apply {
        bit<128> value;
        wide.read(value, 2);
        wide.write(2, value + ((bit<128>)1 << 100));
        policer.execute_meter((bit<32>)1, meta.colour);
        hosts.apply();
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
ENTRY = TableEntry(key=(LpmMatch(0x020000000000, 8),), action=ActionCall("I.send", (1,)))
FRAME = bytes.fromhex("0200000000010200000000029000") + bytes(46)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> NativeSwitch:
    source = tmp_path_factory.mktemp("program") / "arrays.p4"
    source.write_text(PROGRAM)
    switch = NativeSwitch()
    switch.load(load_program(compile_file(source).json_text()))
    return switch


@pytest.fixture
def switch(loaded: NativeSwitch) -> Iterator[NativeSwitch]:
    loaded.register_fill("I.wide", 0)
    yield loaded
    for entry in list(loaded.table_entries("I.hosts")):
        loaded.table_delete("I.hosts", entry.key, entry.priority)


def rows(table: Table) -> list[tuple[int, str, str, str, str]]:
    columns = [
        values.texts().tolist() if isinstance(values, Names) else [str(value) for value in values.tolist()]
        for name, values in table.items()
        if name not in ("time_ps", "switch")
    ]
    times = table["time_ps"]
    assert not isinstance(times, Names)
    return list(zip(times.tolist(), *columns, strict=True))


def test_wide_registers_and_meters_are_sampled(switch: NativeSwitch) -> None:
    samples = StateSamples([Item.read("wide[1..2]"), Item.read("policer")], [("s1", switch)])
    green = switch.meter_read("I.policer", 1).counts[0].packets
    switch.process(0, FRAME)
    assert samples.sample(7) == 2 + 2 * 3
    assert rows(samples.table()) == [
        (7, "I.wide", "2", "value", str(1 << 100)),
        (7, "I.policer", "1", "green_packets", str(green + 1)),
    ]


def test_entries_come_go_and_come_again(switch: NativeSwitch) -> None:
    samples = StateSamples([Item.read("I.h*")], [("s1", switch)])
    samples.sample(0)
    switch.table_insert("I.hosts", ENTRY)
    switch.process(0, FRAME)
    samples.sample(1)
    switch.table_delete("I.hosts", ENTRY.key, ENTRY.priority)
    samples.sample(2)
    samples.sample(3)
    switch.table_insert("I.hosts", ENTRY)
    samples.sample(4)
    text = "02:00:00:00:00:00/8"
    found = [row for row in rows(samples.table()) if row[2] != "default"]
    assert found == [
        (1, "I.hosts", "", "entries", "1"),
        (1, "I.hosts", text, "packets", "1"),
        (1, "I.hosts", text, "bytes", str(len(FRAME))),
        (2, "I.hosts", "", "entries", "0"),
        (2, "I.hosts", text, "packets", str(GONE)),
        (2, "I.hosts", text, "bytes", str(GONE)),
        (4, "I.hosts", "", "entries", "1"),
        (4, "I.hosts", text, "packets", "0"),
        (4, "I.hosts", text, "bytes", "0"),
    ]


def test_a_switch_that_has_no_program_has_no_objects() -> None:
    with refused(SeriesError, problem="no table, counter, meter or"):
        StateSamples([Item.read("x")], [("s1", NativeSwitch())])

"""A result declares a column once: the terminal's table, the page's and what sweeps compare follow."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import NoneType, SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from rich.console import Console

from weft import topologies
from weft.quantities.plain_data import PlainData, plain
from weft.results import columns
from weft.results.columns import Column, ResultTable, grouped_thousandths
from weft.results.drops import DROPS
from weft.results.figure_tables import Layout
from weft.results.flow_tables import FLOW_COLUMNS
from weft.results.inference_model import LATENCIES
from weft.results.kinds import ItemResult, ResultKind, nothing, result_kinds
from weft.results.latencies import PERCENTILES, Latencies
from weft.results.model import OF_RUN
from weft.results.packet_conservation import PACKET_CONSERVATION, AccountRow
from weft.results.report_parts import ReportTable
from weft.results.request_files import STAGES
from weft.sweeps.store import Outcome, State
from weft.sweeps.summary import measures
from weft.sweeps.table import table_rows

FABRIC = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
LATENCY = Latencies(1, 2, tuple(range(3, 3 + len(PERCENTILES))), 9)
VALUES: Mapping[type, Any] = {int: 2, float: 0.5, str: "p0l0", bool: True}
# Values that others of the same result restrict.
GIVEN: Mapping[str, Any] = {
    "Latencies.percentiles": LATENCY.percentiles,
    "InferenceResult.latency_ps": dict.fromkeys(LATENCIES, LATENCY),
    "InferenceResult.stages_ps": dict.fromkeys(STAGES, LATENCY),
    "WorkloadResult.slowdown": (1.0, 2.0, 3.0),
    "SizeBin.slowdown": (1.0, 2.0, 3.0),
    "SizeBin.completion_ps": (1, 2, 3),
    "TrainingRunResult.losses": [2.0, 1.0, 0.5],
    "TrainingRunResult.single_losses": [2.0, 1.0, 0.5],
    "TrainingRunResult.steps_ps": [3, 4],
    "TrainingJobResult.ranks": {key: [1, 1] for key in ("compute", "exposed", "bubble", "stall")},
    "ParameterServerResult.parts_ps": {"compute": [1, 1]},
    "ProgramResult.series": {"points": [[1.0, 2.0]]},
    "TcpWindows.flow": (0,),
    "FlowsResult.flows": 1,
    "FlowsResult.host_names": ["h0", "h1"],
    "FlowsResult.records": {each.name: np.array([1]) for each in FLOW_COLUMNS},
}
KINDS = {kind.key: kind for kind in (*result_kinds(), *OF_RUN)}
IN_A_LINE = (DROPS, PACKET_CONSERVATION)
"""The terminal has a line of text for these, and no table."""
ACCOUNT = [
    AccountRow(*row)
    for row in (
        ("entered", "sent", 1, 2), ("entered", "in all", 1, 2), ("left", "delivered", 1, 2), ("left", "in all", 1, 2),
        ("absorbed and dropped", "in all", 0, 0), ("under way", "in all", 0, 0),
    )
]  # fmt: skip


def sample(hint: Any) -> Any:
    """Return a value of a type that is not empty, null or 0."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return sample_result(hint)
    if origin is Annotated:
        return sample(arguments[0])
    if origin is Literal:
        return arguments[0]
    if origin in (list, tuple):
        return origin([sample(arguments[0])])
    if origin is dict:
        return {sample(arguments[0]): sample(arguments[1])}
    if NoneType in arguments:
        return sample(next(each for each in arguments if each is not NoneType))
    return VALUES.get(hint, 1)


def sample_result(model: Any) -> Any:
    hints = get_type_hints(model, include_extras=True)
    given = {name: GIVEN.get(f"{model.__name__}.{name}") for name in hints}
    names = [each.name for each in fields(model) if each.compare or given[each.name]]
    return model(**{name: given[name] or sample(hints[name]) for name in names})


@dataclass(frozen=True)
class Waits(ItemResult):
    """Waits."""

    derived: ClassVar[Mapping[str, str]] = {"waited_ps": "sum_ps"}

    name: str
    wait_ps: int | None
    more: tuple[int, ...] = ()
    kept: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def sum_ps(self) -> int:
        """Return all of it."""
        return (self.wait_ps or 0) + sum(self.more)


NAME = Column[Waits]("who\nwaits", "name", is_name=True)
WAIT = Column[Waits](
    "wait\n", "wait_ps", "µs", 1e6, digits=1, missing="-", page={"digits": 3}, sweep={"title": "waiting"}
)
TABLE = ResultTable("Waits", (NAME, WAIT), "waits", "of all")
ROWS = [Waits("a", 1_234_567), Waits("b", None), Waits("[c]", 10**12)]


def printed(table: ResultTable[Waits], rows: list[Waits]) -> list[str]:
    stream = io.StringIO()
    table.print(Console(file=stream, highlight=False, width=80), rows)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_a_column_is_shown_as_each_place_has_it() -> None:
    assert printed(TABLE, ROWS) == [
        "", "waits", "who         wait", "waits       (µs)", "a            1.2", "b              -",
        "[c]    1000000.0",
    ]  # fmt: skip
    part = TABLE.part(ROWS)
    assert (part.title, list(part.columns), part.note) == ("Waits", ["who waits", "wait (µs)"], "of all")
    assert part.rows == [["a", 1.235], ["b", "-"], ["[c]", 1e6]]
    (compared,) = ResultKind("waits", Waits, tables=(TABLE,)).compared()
    assert (compared.name, compared.unit, compared.digits, compared.value) == ("waiting", "µs", 1, "wait_ps")


def test_sweeps_compare_keys_only() -> None:
    column = Column[Waits]("wait", lambda each: each.sum_ps, sweep={})
    with pytest.raises(TypeError, match="waits: sweeps cannot compare column 'wait' by a function"):
        ResultKind("waits", Waits, columns=(column,))


def test_rows_and_columns_that_are_left_out() -> None:
    sums = Column[Waits]("sum", "sum_ps", only_if=lambda rows: any(each.more for each in rows))
    table = replace(
        TABLE,
        columns=(replace(NAME, is_numbered=True), replace(WAIT, page=None), sums),
        layout=Layout(is_narrow=True, headings="bottom", whole=True),
        shown=grouped_thousandths,
        most_printed=1,
        most=2,
    )
    assert printed(table, ROWS)[-2:] == ["a     1.200", "… and 2 more"]
    assert table.part(ROWS).rows == [["1 a"], ["2 b"]]
    assert table.part(ROWS).note == "of all; 2 of 3: the first"
    assert list(table.part([Waits("a", 1, (2, 3))]).columns) == ["who waits", "sum"]
    assert printed(table, []) == []


def test_plain_data_are_the_fields_and_the_derived_figures() -> None:
    assert Waits("a", 1, (2, 3), {"kept": 1}).as_dict() == {
        "name": "a", "wait_ps": 1, "more": [2, 3], "waited_ps": 6,
    }  # fmt: skip
    assert Waits("a", 1).ok
    assert plain([{1: (Waits("b", None),)}]) == [{"1": [{"name": "b", "wait_ps": None, "more": [], "waited_ps": 0}]}]


@pytest.mark.parametrize("key", KINDS)
def test_tables_have_the_declared_columns(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables that a kind prints, and all of its page, are made by `ResultTable`."""
    terminal: list[list[str]] = []
    pages: list[ReportTable] = []

    def print_table(_: Console, __: str, headings: Sequence[tuple[str, bool]], *___: object) -> None:
        terminal.append([heading for heading, _ in headings])

    def report_table(*arguments: Any) -> ReportTable:
        pages.append(ReportTable(*arguments))
        return pages[-1]

    monkeypatch.setattr(columns, "print_table", print_table)
    monkeypatch.setattr(columns, "ReportTable", report_table)
    kind = KINDS[key]
    results = ACCOUNT if kind is PACKET_CONSERVATION else [sample_result(kind.model)]
    kind.print(Console(file=io.StringIO()), results)
    parts = [part for part in kind.parts(results, FABRIC) if isinstance(part, ReportTable)]
    assert len(parts) == len(pages)
    assert bool(terminal) == (kind.show is not nothing and kind not in IN_A_LINE)
    assert pages or kind.report is nothing
    for table in kind.tables:
        shown = [each for each in table.columns if each.only_if(results)]
        of_terminal = [look.heading for each in shown if (look := each.at("terminal")) is not None]
        of_page = [look.heading for each in shown if (look := each.at("page")) is not None]
        if kind.show is None:
            assert of_terminal in terminal
        if kind.report is not nothing:
            assert [" ".join(heading.split()) for heading in of_page] in [part.columns for part in parts]


@pytest.mark.parametrize("kind", result_kinds(), ids=lambda kind: kind.key)
def test_sweeps_compare_the_declared_columns(kind: ResultKind[Any]) -> None:
    results = {kind.key: [plain(sample_result(kind.model))]}
    point = SimpleNamespace(identity="0", parameters={})
    (row,) = table_rows([(point, Outcome(State.FINISHED), results)], [])
    for column in kind.compared():
        found = [each for each in measures() if each.name == column.name and each.unit == column.unit]
        assert row[str(column.value)] is not None
        assert any(measure.of(row) == row[str(column.value)] / column.scale for measure in found)


def test_all_models_have_one_rule_for_plain_data() -> None:
    assert all(issubclass(kind.model, PlainData) for kind in KINDS.values())

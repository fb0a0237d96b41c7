"""Results of a collective: nccl-tests' figures, and whether NumPy agrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator
from rich.console import Console

from weft.quantities.readable import counted, format_size
from weft.quantities.units import PS_PER_US
from weft.results.choices import AlgorithmChoice
from weft.results.clearances import ClearedResult, clearance_columns, clearances_of
from weft.results.columns import Column, Look, ResultTable
from weft.results.counters import HostTotals
from weft.results.figure_tables import Layout
from weft.results.kinds import ResultKind
from weft.results.pairs import PairsResult, pairs_of
from weft.results.report_parts import MOST_ROWS, Axis, BarFigure, Curve, CurveFigure, ReportPart, shown_of
from weft.results.verification import Verdict
from weft.topologies import FabricSpec
from weft.traffic.collectives import AUTO, NCCL, Collective
from weft.traffic.nccl import NcclChoice
from weft.traffic.schedules import CollectiveSpec

_MOST_CURVES = 12
"""Curves that are drawn before readers choose others."""
LENGTHS = "lengths"
"""Stands for data where packets carry lengths only; then nothing can be verified."""


def _nan_for_null(value: object) -> object:
    """JSON knows no infinity and no NaN: `CollectiveResult.as_dict` writes null for an error that is not finite."""
    return math.nan if value is None else value


@dataclass(frozen=True)
class CollectiveResult(ClearedResult):
    """One collective: nccl-tests' figures and how the result compared with NumPy's.

    Packets are counted over all repetitions, and over none of the `warmup`. Bandwidths are 0 where no time passed, as
    with one rank, which has nothing to send. `title` and `reduces` are the collective's own and no part of the file.
    """

    derived: ClassVar[Mapping[str, str]] = {
        "least_time_ps": "least_time_ps",
        "largest_time_ps": "largest_time_ps",
        "algbw_bytes_per_s": "algorithm_bandwidth",
        "busbw_bytes_per_s": "busbw_bytes_per_s",
    }

    collective: str
    """Its name; path/to/file.py:Class of one of yours."""
    algorithm: str
    """Algorithm as asked for; with `auto`, `choice` names the one that ran."""
    size_bytes: int
    """Size of a rank's input or result, whichever is larger."""
    count: int
    """Elements that a rank gives, or gets of another."""
    dtype: str
    """Type of the elements."""
    operation: str
    """Operation of a collective that reduces."""
    ranks: int
    """How many took part."""
    time_ps: int
    """The mean of `times_ps`."""
    wrong: int
    """Elements that are not what NumPy computes, of all repetitions."""
    identical: bool
    """Whether all ranks have the same result."""
    largest_error: Annotated[float, BeforeValidator(_nan_for_null)]
    """The largest difference from NumPy's result; null: NaN or infinity."""
    error_bound: float
    """How large it may be."""
    packets_aggregated: int
    """By switches, over all repetitions."""
    retransmissions: int
    """Packets sent again, over all repetitions."""
    data: str = "random"
    """`random`, or `lengths` in place of data."""
    root: int | None = None
    """The rank from which a broadcast or scatter goes, or to which a reduce or gather goes; null for others."""
    verified: bool = True
    """Whether the result was compared; where lengths stood for data it was not, and `wrong` and the errors are 0."""
    overflowed_packets: int = 0
    """Packets' worth of elements with a sum that left its type's range in the network; of all ranks and repetitions."""
    cnps: int = 0
    """Congestion notifications received, over all repetitions."""
    times_ps: tuple[int, ...] = ()
    """Times of all repetitions, each from the common start to the last rank's end."""
    warmup: int = 0
    """Runs before those that were measured."""
    busbw_bytes_per_s: float = 0.0
    """nccl-tests' bus bandwidth by the mean time; 0 where no time passed."""
    choice: AlgorithmChoice | None = None
    """Choice of `auto`; missing where the algorithm was named."""
    nccl: NcclChoice | None = None
    """Choice of NCCL's own model with `nccl`; missing for other algorithms."""
    protocol: str = ""
    """NCCL's protocol in which messages travelled; missing where none was named."""
    pairs: PairsResult | None = None
    """Sizes of an all-to-all-v; missing for other collectives."""
    title: str = field(default="", compare=False, repr=False)
    reduces: bool = field(default=True, compare=False, repr=False)

    @property
    def algorithm_bandwidth(self) -> float:
        """Return S / t in bytes per second."""
        return self.size_bytes / (self.time_ps * 1e-12) if self.time_ps else 0.0

    @property
    def least_time_ps(self) -> int:
        """Return the shortest repetition's time."""
        return min(self.times_ps, default=self.time_ps)

    @property
    def largest_time_ps(self) -> int:
        """Return the longest repetition's time."""
        return max(self.times_ps, default=self.time_ps)

    @property
    def cleared_ps(self) -> int:
        """The sum of `times_ps`."""
        return sum(self.times_ps)

    @property
    def ok(self) -> bool:
        """Return whether nothing is known to be wrong on any rank."""
        return self.wrong == 0 and self.identical

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the derived figures."""
        data = super().as_dict()
        for name in ("choice", "nccl", "protocol", "pairs"):
            if not getattr(self, name):
                del data[name]
        if not math.isfinite(self.largest_error):
            # JSON knows no NaN and no infinity; `wrong` says what happened.
            data["largest_error"] = None
        return data


def collective_result(
    collective: Collective,
    algorithm: str,
    spec: CollectiveSpec,
    times_ps: Sequence[int],
    counts: Sequence[HostTotals],
    verdicts: Sequence[Verdict],
    *,
    warmup: int,
    data: str,
    choice: AlgorithmChoice | NcclChoice | None = None,
) -> CollectiveResult:
    """Return what a collective found.

    Args:
        collective: what was run.
        algorithm: by which.
        spec: with which ranks and how much data.
        times_ps: of all repetitions.
        counts: what hosts and switches counted in each repetition.
        verdicts: on the results of all runs, the warm-up's too; none where lengths stood for data.
        warmup: runs before the repetitions.
        data: what the data were.
        choice: what `auto` or `nccl` chose, if that is the algorithm.
    """
    worst = max(verdicts, key=lambda verdict: verdict.largest_error, default=Verdict(0, True, 0.0, 0.0))
    result = CollectiveResult(
        collective=collective.name,
        algorithm=algorithm,
        size_bytes=spec.size_bytes,
        count=collective.nccl_count(spec),
        dtype=spec.dtype.value,
        operation=spec.operation.name.lower(),
        ranks=spec.rank_count,
        time_ps=round(sum(times_ps) / len(times_ps)),
        times_ps=tuple(times_ps),
        warmup=warmup,
        verified=bool(verdicts),
        wrong=sum(verdict.wrong for verdict in verdicts),
        identical=all(verdict.identical for verdict in verdicts),
        largest_error=worst.largest_error,
        error_bound=worst.bound,
        packets_aggregated=sum(each.aggregated_packets for each in counts),
        retransmissions=sum(each.retransmissions for each in counts),
        overflowed_packets=sum(each.overflowed_packets for each in counts),
        cnps=sum(each.cnps for each in counts),
        data=data,
        choice=choice if isinstance(choice, AlgorithmChoice) else None,
        nccl=choice if isinstance(choice, NcclChoice) else None,
        protocol=spec.protocol,
        clear_to_send=clearances_of(spec.clear_to_send, spec.rank_count, times_ps, counts),
        root=spec.root if collective.has_root else None,
        pairs=pairs_of(collective, spec),
        title=collective.title,
        reduces=collective.reduces,
    )
    factor = collective.bus_bandwidth_factor(spec.rank_count)
    return replace(result, busbw_bytes_per_s=result.algorithm_bandwidth * factor)


def asked_for(choice: AlgorithmChoice | NcclChoice | None) -> str:
    """Return the name of what has chosen an algorithm; "" for no choice."""
    if choice is None:
        return ""
    return NCCL if isinstance(choice, NcclChoice) else AUTO


def _is_repeated(results: Sequence[CollectiveResult]) -> bool:
    return any(len(result.times_ps) > 1 for result in results)


def _time(
    title: str,
    value: str | Callable[[CollectiveResult], object],
    only_if: Callable[[Sequence[CollectiveResult]], bool] = _is_repeated,
) -> Column[CollectiveResult]:
    return Column(f"{title}\n", value, unit="µs", scale=PS_PER_US, digits=1, only_if=only_if, page={"digits": 3})


def _has_pairs(results: Sequence[CollectiveResult]) -> bool:
    return any(each.pairs is not None for each in results)


def _bandwidth(title: str, value: str, sweep: Look | None = None) -> Column[CollectiveResult]:
    return Column(f"{title}\n", value, unit="GB/s", scale=1e9, digits=2, page={"digits": 3}, sweep=sweep)


_TABLE = ResultTable[CollectiveResult](
    "Collectives",
    # The terminal has nccl-tests' words for what does not apply: no operation, no root.
    (
        Column(
            "algorithm",
            lambda each: _algorithm(each),
            page={"title": "collective", "value": lambda each: f"{each.collective}, {_algorithm(each)}"},
        ),
        Column("protocol", "protocol", only_if=lambda results: any(each.protocol for each in results)),
        Column("size\n", "size_bytes", unit="B"),
        Column("count", "count", page=None),
        Column("type", "dtype"),
        Column(
            "redop",
            lambda each: each.operation if each.reduces else "none",
            page={"title": "operation", "value": "operation"},
        ),
        Column("root", "root", missing="-1", page=None),
        _time("time", "time_ps", lambda results: not _is_repeated(results)),
        _time("mean", "time_ps"),
        _time("least", "least_time_ps"),
        _time("largest", "largest_time_ps"),
        Column("repetitions", lambda each: len(each.times_ps), only_if=_is_repeated, terminal=None),
        _time("ideal", lambda each: None if each.pairs is None else each.pairs.ideal_ps, _has_pairs),
        Column(
            "imbalance",
            lambda each: None if each.pairs is None else each.pairs.imbalance,
            digits=2,
            only_if=_has_pairs,
            page={"digits": 3},
        ),
        _bandwidth("algbw", "algorithm_bandwidth"),
        _bandwidth("busbw", "busbw_bytes_per_s", sweep={"more_is_better": True}),
        Column(
            "#wrong",
            lambda each: _wrong(each) if each.verified else "N/A",
            page={"title": "wrong", "value": lambda each: _wrong(each) if each.verified else "lengths only"},
        ),
        Column("error", lambda each: _error(each), page=None),
        Column("bound", lambda each: _bound(each), page=None),
        Column("overflowed packets", "overflowed_packets", terminal=None),
        Column("retransmitted\npackets", "retransmissions"),
        Column("CNPs", "cnps", terminal=None),
        *clearance_columns(CollectiveResult),
    ),
    layout=Layout(is_narrow=True, headings="bottom", whole=True),
)


def _print_table(console: Console, results: Sequence[CollectiveResult]) -> None:
    """Print nccl-tests' columns, one row per algorithm and size (times µs, bandwidths GB/s).

    With repetitions, the time is their mean, and the least and the largest follow.
    """
    _TABLE.print(console, results)
    for result in results:
        if result.choice is not None:
            console.print(_reason(result, result.choice))
        if result.nccl is not None:
            console.print(_nccl_reason(result, result.nccl), markup=False, soft_wrap=True)
    for count, warmup in sorted({(len(result.times_ps), result.warmup) for result in results}):
        if count > 1 or warmup:
            console.print(f"of {count} repetitions, after {warmup} to warm up")


def _algorithm(result: CollectiveResult) -> str:
    chosen = result.choice or result.nccl
    return f"{result.algorithm}: {chosen.algorithm}" if chosen else result.algorithm


def _reason(result: CollectiveResult, choice: AlgorithmChoice) -> str:
    predicted_us, measured_us = choice.predicted_ps / PS_PER_US, result.time_ps / PS_PER_US
    return (
        f"auto, {result.size_bytes} B: {choice.algorithm}, {predicted_us:.1f} µs predicted, "
        f"{measured_us:.1f} measured; {choice.reason}"
    )


def _nccl_reason(result: CollectiveResult, choice: NcclChoice) -> str:
    predicted_us, measured_us = choice.predicted_ps / PS_PER_US, result.time_ps / PS_PER_US
    return f"NCCL {choice.version}: {choice.log}; {predicted_us:.1f} µs predicted by NCCL, {measured_us:.1f} measured"


def _error(result: CollectiveResult) -> str:
    if not result.verified:
        return "not verified"
    return "exact" if result.error_bound == 0.0 and result.ok else f"{result.largest_error:.2g}"


def _bound(result: CollectiveResult) -> str:
    return f"{result.error_bound:.2g}" if result.verified and result.error_bound else ""


def print_collectives(console: Console, results: Sequence[CollectiveResult]) -> None:
    """Print a table for each collective."""
    for name, group in groupby(results, key=lambda result: result.collective):
        of_one_kind = list(group)
        title = of_one_kind[0].title or name
        console.print(f"\n[bold]{title} over {counted(of_one_kind[0].ranks, 'rank')}[/bold] (time is emulated)")
        _print_table(console, of_one_kind)


def report_collectives(results: Sequence[CollectiveResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Times, and a table of nccl-tests' figures; of repetitions the mean time, and the least and the largest."""
    yield from _figures(results)
    warm = max((each.warmup for each in results), default=0)
    yield _TABLE.part(results, f"after up to {warm} runs to warm up" if warm else "")


def _figures(results: Sequence[CollectiveResult]) -> Iterator[ReportPart]:
    """Yield curves for each collective that an algorithm ran with several sizes, and bars for the others."""
    by_name: dict[str, list[CollectiveResult]] = {}
    for each in results:
        by_name.setdefault(each.collective, []).append(each)
    others = []
    for name, of_name in by_name.items():
        curves = _curves(of_name)
        if any(len(set(curve.x)) > 1 for curve in curves):
            yield CurveFigure(
                f"Times of {name} by size",
                Axis("size (B)", "B", "log"),
                Axis("time (µs)", "µs", "log"),
                curves,
                drawn=_MOST_CURVES,
            )
        else:
            others += of_name
    if len(others) > 1:
        yield _times(others)


def _curves(results: Sequence[CollectiveResult]) -> list[Curve]:
    """Return times by size of each algorithm, and of each protocol and each type of elements if there are several."""
    has_protocols = len({each.protocol for each in results}) > 1
    has_types = len({each.dtype for each in results}) > 1
    groups: dict[str, list[CollectiveResult]] = {}
    for each in sorted(results, key=lambda result: result.size_bytes):
        parts = [_algorithm(each), each.protocol if has_protocols else "", each.dtype if has_types else ""]
        groups.setdefault(", ".join(filter(None, parts)), []).append(each)
    return [
        Curve(name, [each.size_bytes for each in group], [each.time_ps / PS_PER_US for each in group])
        for name, group in sorted(groups.items())
    ]


def _times(results: Sequence[CollectiveResult]) -> BarFigure:
    rows = [
        f"{number} {each.collective}, {_algorithm(each)}, {format_size(each.size_bytes)}"
        for number, each in enumerate(results[:MOST_ROWS], 1)
    ]
    return BarFigure(
        "Times of collectives",
        Axis("time (µs)", "µs"),
        rows,
        {"time": [each.time_ps / PS_PER_US for each in results[:MOST_ROWS]]},
        note=shown_of(len(rows), len(results), "the first"),
    )


def _wrong(result: CollectiveResult) -> int | str:
    return result.wrong if result.identical else f"{result.wrong}, ranks differ"


def _problems(result: CollectiveResult) -> Iterator[tuple[str, str]]:
    if result.ranks <= 0:
        yield "ranks", f"{result.ranks} is out of range (valid: 1 or more)"


COLLECTIVES = ResultKind(
    key="collectives",
    meaning="One for each collective, algorithm and size.",
    is_always_written=True,
    model=CollectiveResult,
    is_checked=lambda each: each.verified,
    show=print_collectives,
    order=1,
    report=report_collectives,
    problems=_problems,
    name="collective",
    labels=("algorithm", "protocol", "size_bytes", "dtype", "operation", "root"),
    tables=(_TABLE,),
)

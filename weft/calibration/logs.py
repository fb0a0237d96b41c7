"""Reads the tables that nccl-tests and rccl-tests print.

The logs are NVIDIA's nccl-tests' (src/common.cu, src/util.cu), versions 2.0 to 2.20: comment lines with `#`, a
line for each rank, a heading, and a row for each size. The columns `redop` and `root` came with later versions, and
all-to-all of earlier ones leaves `redop` empty, so the heading says which columns there are. Times are in µs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from weft.errors import BadInputError
from weft.quantities.units import shown

MAX_FILE_BYTES = 16 * 2**20
"""Largest log that is read."""
MAX_LINE_CHARACTERS = 4096
MAX_TABLES = 64
MAX_ROWS = 10_000
"""Most rows of a log."""

PROGRAMS = {
    "all_reduce_perf": "allreduce",
    "all_gather_perf": "allgather",
    "reduce_scatter_perf": "reducescatter",
    "alltoall_perf": "alltoall",
    "broadcast_perf": "broadcast",
    "reduce_perf": "reduce",
}
"""The collective of each program of nccl-tests that Weft has."""

# What mpirun, Ray, srun and quoted mail put before a line.
_PREFIX = re.compile(r"(?:\[[^\]]{0,64}\]<std\w{1,3}>:?|\([^)]{0,128}\)|>|\d{1,6}:)\s*")
_PROGRAM = re.compile(r"(?<![A-Za-z_])([a-z]{1,16}(?:_[a-z]{1,16})?_perf)(?:_mpi)?\b")
_RANK = re.compile(r"Rank\s+(\d{1,7})\s.*?\bPid\s+\d+\s+on\s+(\S+)", re.ASCII)
_ROW = re.compile(r"(\d{1,18})\s+(\d{1,18})\s+[A-Za-z]\w*", re.ASCII)
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?(?:[eE][-+]?\d{1,2})?\Z", re.ASCII)
_ROOT = re.compile(r"-?\d{1,9}\Z", re.ASCII)
_FIRST_COLUMNS = ("size", "count", "type")
_MEASURED = ("time", "algbw", "busbw")
_MOST_TIME_US = 1e9
_BANDWIDTH_ROUNDING = 0.006
"""The table rounds GB/s to two decimals."""
_BANDWIDTH_TOLERANCE = 0.01


@dataclass(frozen=True)
class Measurement:
    """A size of a table.

    Attributes:
        size_bytes: as nccl-tests counts it: a rank's input or result, whichever is larger.
        time_ps: the median of its rows.
        line: the line of its first row.
        rows: how many rows have this size.
    """

    size_bytes: int
    time_ps: float
    line: int
    rows: int = 1


@dataclass(frozen=True)
class MeasuredTable:
    """A table of a log: a collective of some ranks, by size.

    Attributes:
        path: the log.
        collective: Weft's name of the collective.
        ranks: how many ranks took part.
        nodes: how many hosts they ran on.
        measurements: in ascending order of sizes, without size 0.
        remarks: what readers must know: a missing end, wrong results.
    """

    path: str
    collective: str
    ranks: int
    nodes: int
    measurements: tuple[Measurement, ...]
    remarks: tuple[str, ...] = ()


def read_log(path: Path, *, in_place: bool = False, collective: str | None = None) -> list[MeasuredTable]:
    """Return the tables of a log.

    Args:
        path: what nccl-tests or rccl-tests printed, other programs' lines among it.
        in_place: whether to take the times in place, not out of place.
        collective: the collective of all tables; by default the log or its name says it.

    Raises:
        BadInputError: the log cannot be read, or a row is cut or contradicts itself; says on which line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}", place=path) from None
    if len(content) > MAX_FILE_BYTES:
        raise BadInputError("is too large for a log", place=path, valid=f"up to {MAX_FILE_BYTES:,} B")
    return parse_log(content.decode("utf-8", "replace"), str(path), in_place=in_place, collective=collective)


def parse_log(text: str, place: str, *, in_place: bool = False, collective: str | None = None) -> list[MeasuredTable]:
    """Return the tables of a log's text; `place` names it. Raises as `read_log`."""
    sections = [section for section in _sections(text, place, in_place) if section.columns is not None]
    if not any(section.times for section in sections):
        raise BadInputError(
            "has no table of nccl-tests: no row of sizes and times",
            place=place,
            valid="the output of all_reduce_perf and the like, with its heading '# size count type …'",
        )
    return [section.table(place, collective) for section in sections if section.times]


@dataclass
class _Section:
    """The lines of a program's run."""

    line: int
    program: str = ""
    ranks: dict[int, int] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    columns: list[str] | None = None
    times: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    zero_sizes: int = 0
    wrong_line: int = 0
    has_end: bool = False

    def table(self, place: str, collective: str | None) -> MeasuredTable:
        where = f"{place}:{self.line}"
        ranks = len(self.ranks)
        if not ranks:
            raise BadInputError(
                "does not say which ranks ran", place=where, valid="a line '# Rank 0 … Pid … on HOST' for each"
            )
        if sorted(self.ranks) != list(range(ranks)):
            missing = next(number for number in range(ranks) if number not in self.ranks)
            raise BadInputError(f"has no line for rank {missing}, but {ranks} others", place=where)
        remarks = []
        if not self.has_end:
            remarks.append(f"{where}: the log ends before '# Avg bus bandwidth'; its whole rows are used")
        if self.wrong_line:
            remarks.append(f"{place}:{self.wrong_line}: nccl-tests found wrong elements")
        measurements = tuple(
            Measurement(size, median(time for time, _ in rows) * 1e6, rows[0][1], len(rows))
            for size, rows in sorted(self.times.items())
        )
        return MeasuredTable(
            place,
            collective or _collective_of(self.program, place, where),
            ranks,
            max(1, len(self.nodes)),
            measurements,
            tuple(remarks),
        )


def _sections(text: str, place: str, in_place: bool) -> list[_Section]:
    section = _Section(1)
    sections = [section]
    rows = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = _without_prefix(raw[:MAX_LINE_CHARACTERS])
        plain = line.lstrip("# ").rstrip()
        # A run's first line; the name of its program may stand above it, or on the command line before.
        if plain.startswith(("nThread ", "Collective test starting")):
            if section.columns is not None:
                section = _Section(number)
                sections.append(section)
                if len(sections) > MAX_TABLES:
                    raise BadInputError("has too many tables", place=f"{place}:{number}", valid=f"up to {MAX_TABLES}")
        elif section.has_end and section.columns is not None and _PROGRAM.search(line):
            section = _Section(number)
            sections.append(section)
        if found := _PROGRAM.search(line):
            section.program = found[1]
        if found := _RANK.match(plain):
            _see_rank(section, int(found[1]), found[2], f"{place}:{number}")
        elif (columns := _columns_of(plain)) is not None:
            section.columns = columns
        elif plain.startswith("Avg bus bandwidth"):
            section.has_end = True
        elif section.columns is not None and (found := _ROW.match(line)):
            rows += 1
            if rows > MAX_ROWS:
                raise BadInputError("has too many rows", place=f"{place}:{number}", valid=f"up to {MAX_ROWS:,}")
            _see_row(section, section.columns, line.split(), number, place, in_place)
    return sections


def _without_prefix(line: str) -> str:
    line = line.strip()
    while found := _PREFIX.match(line):
        line = line[found.end() :]
    return line


def _see_rank(section: _Section, rank: int, node: str, where: str) -> None:
    if rank in section.ranks:
        raise BadInputError(
            f"rank {rank} a second time: processes ran alone, each with ranks from 0",
            place=where,
            hint="build nccl-tests with MPI=1, or give each process's output in a log of its own",
        )
    section.ranks[rank] = 1
    section.nodes.add(node)


def _columns_of(line: str) -> list[str] | None:
    columns = line.split()
    if tuple(columns[:3]) == _FIRST_COLUMNS and "time" in columns:
        return columns
    return None


def _see_row(
    section: _Section, columns: Sequence[str], cells: Sequence[str], number: int, place: str, in_place: bool
) -> None:
    where = f"{place}:{number}"
    first = columns.index("time")
    measured = len(columns) - first
    between = len(cells) - len(_FIRST_COLUMNS) - measured
    expected = first - len(_FIRST_COLUMNS)
    # All-to-all of older versions leaves `redop` empty; a root is a number all the same.
    is_whole = between == expected or (
        between == expected - 1 and "redop" in columns and all(map(_ROOT.match, cells[3 : 3 + between]))
    )
    groups = [at - first for at, name in enumerate(columns) if name == "time"]
    if not is_whole or between < 0:
        raise BadInputError(
            f"has {len(cells)} columns where the heading has {len(columns)}: the row is cut, or another program "
            "wrote into it",
            place=where,
        )
    values = cells[len(_FIRST_COLUMNS) + between :]
    if in_place and len(groups) < 2:
        raise BadInputError("the table has no times in place", place=where)
    begin = groups[1 if in_place else 0]
    time_us, bandwidth = (_number(values[begin + at], columns[first + begin + at], where) for at in (0, 1))
    size = int(cells[0])
    if begin + len(_MEASURED) < len(values) and _is_wrong(values[begin + len(_MEASURED)], columns[-1]):
        section.wrong_line = section.wrong_line or number
    if size == 0:
        section.zero_sizes += 1
        return
    if not 0 < time_us <= _MOST_TIME_US:
        raise BadInputError(f"the time is {time_us:g} us", place=where, valid=f"above 0, to {_MOST_TIME_US:g} us")
    # GB/s are 10^9 B/s. A cell that was cut or run together with another one shows here.
    expected_bandwidth = size / time_us / 1e3
    tolerance = _BANDWIDTH_ROUNDING + _BANDWIDTH_TOLERANCE * expected_bandwidth
    if abs(bandwidth - expected_bandwidth) > tolerance:
        raise BadInputError(
            f"algbw is {bandwidth:g} GB/s, but {size} B in {time_us:g} us are {expected_bandwidth:.2f} GB/s",
            place=where,
        )
    section.times.setdefault(size, []).append((time_us, number))


def _number(cell: str, column: str, where: str) -> float:
    if not _NUMBER.match(cell):
        raise BadInputError(f"{column} is {shown(cell)}", place=where, valid="a number")
    return float(cell)


def _is_wrong(cell: str, column: str) -> bool:
    # Earlier versions print the largest error there, which is no count.
    return column == "#wrong" and cell.isdigit() and int(cell) > 0


def _collective_of(program: str, place: str, where: str) -> str:
    if program:
        if program not in PROGRAMS:
            raise BadInputError(f"Weft has no collective for {program}", place=where, valid=PROGRAMS)
        return PROGRAMS[program]
    found = list(_named_in(Path(place).stem))
    if len(found) != 1:
        raise BadInputError(
            "neither the log nor its name says which collective ran",
            place=where,
            valid=f"a file name with {', '.join(PROGRAMS)}, or --collective NAME",
        )
    return found[0]


def _named_in(stem: str) -> Iterator[str]:
    plain = re.sub("[^a-z]", "", stem.lower())
    for collective in ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast"):
        if collective in plain:
            yield collective

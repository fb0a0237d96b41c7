"""Reads GOAL text as a job. Each `cpu` of a rank becomes a stream."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from weft.errors import Refusal, translated
from weft.jobs.traces.assembling import MAX_RANKS, JobAssembler, RankAssembler
from weft.jobs.traces.definition import ReadOptions
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.goal.grammar import Statement, statements
from weft.jobs.traces.memory import STATEMENTS_BETWEEN_CHECKS, check_memory
from weft.quantities.units import PS_PER_NS
from weft.traffic.jobs import Job, JobError, OperationsError


class _WrongStatement(Refusal):
    """A problem with a statement; the message lacks the place."""


@dataclass(frozen=True, slots=True)
class _Label:
    """A labelled statement, as others depend on it.

    Attributes:
        start: the operation that starts with it.
        end: the operation that ends with it, or starts with its end if `ends_at_start`.
    """

    start: int
    end: int
    ends_at_start: bool = False


class _RankText:
    """The statements of one rank."""

    def __init__(self, options: ReadOptions) -> None:
        self.assembler = RankAssembler()
        self.lines: array[int] = array("q")
        self._options = options
        self._labels: dict[str, _Label] = {}
        self._later: list[tuple[int, str, str, bool]] = []
        """Dependencies with labels not yet read, each with its line."""

    def add(self, statement: Statement, rank: int, rank_count: int) -> None:
        """Add an operation or a dependency. Raises OperationsError, _WrongStatement."""
        said = statement.said
        if "requires" in said:
            names = said["later"], said["earlier"], said["requires"] == "irequires"
            if not self._link(*names):
                self._later.append((statement.line, *names))
            return
        label = self._operation(statement, rank, rank_count)
        self.lines.extend([statement.line] * (len(self.assembler.operations) - len(self.lines)))
        name = said.get("label")
        if name is None:
            return
        if name in self._labels:
            raise _WrongStatement(f"label {name!r} occurs twice in rank {rank}")
        self._labels[name] = label

    def _operation(self, statement: Statement, rank: int, rank_count: int) -> _Label:
        operations, cpu = self.assembler.operations, statement.number("cpu")
        name = statement.said.get("label", "")
        if "calc" in statement.said:
            calculated = operations.compute(statement.number("calc") * PS_PER_NS, stream=cpu, name=name)
            return _Label(calculated, calculated)
        peer, tag = self._peer_and_tag(statement, rank, rank_count)
        overhead_ps = self._options.send_overhead_ps
        if "sent" in statement.said:
            size_bytes = statement.number("sent")
            before = [operations.compute(overhead_ps, stream=cpu, name=name)] if overhead_ps else []
            sent = operations.send(peer, size_bytes, tag, after=before, name=name)
            if size_bytes > self._options.eager_bytes:
                return _Label((before or [sent])[0], sent)
            return _Label(before[0], before[0]) if before else _Label(sent, sent, ends_at_start=True)
        received = operations.receive(peer, statement.number("received"), tag, name=name)
        if not overhead_ps:
            return _Label(received, received)
        return _Label(received, operations.compute(overhead_ps, stream=cpu, after=[received], name=name))

    def _peer_and_tag(self, statement: Statement, rank: int, rank_count: int) -> tuple[int, int]:
        peer, tag = statement.number("peer"), statement.number("tag")
        if peer < 0 or tag < 0:
            raise _WrongStatement("a message from any rank or of any tag, -1, cannot be run", valid="0 or more")
        if peer >= rank_count or peer == rank:
            raise _WrongStatement(
                f"rank {rank} and rank {peer} exchange a message", valid=f"another of 0 to {rank_count - 1}"
            )
        return self.assembler.peer_slot(peer), tag

    def _link(self, later: str, earlier: str, at_start: bool) -> bool:
        """Add a dependency between two labels; return False if either is not yet known."""
        if later not in self._labels or earlier not in self._labels:
            return False
        awaited = self._labels[earlier]
        self.assembler.operations.add_after(
            self._labels[later].start,
            [awaited.start if at_start else awaited.end],
            start=at_start or awaited.ends_at_start,
        )
        return True

    def end(self, source: str, rank: int) -> None:
        """Add dependencies on labels read later. Raises TraceError for unknown labels."""
        for line, later, earlier, at_start in self._later:
            if not self._link(later, earlier, at_start):
                name = later if later not in self._labels else earlier
                raise TraceError(f"rank {rank} has no label {name!r}", place=f"{source}, line {line}")


class GoalReader:
    """Reads a text. After `read`, `place` returns where an operation was read."""

    def __init__(self, name: str, source: str, options: ReadOptions) -> None:
        self._job = JobAssembler(name)
        self._source = source
        self._options = options
        self._rank_count = 0
        self._lines: dict[int, array[int]] = {}

    def read(self, lines: Iterable[str]) -> Job:
        """Return the job. Raises TraceError, with file and line, for invalid text."""
        rank, text = -1, None
        for statement in statements(lines, self._source):
            try:
                if "num_ranks" in statement.said:
                    self._set_rank_count(statement.number("num_ranks"))
                elif "rank" in statement.said:
                    if text is not None:
                        raise _WrongStatement(f"rank {rank} has not ended", valid="} first")
                    rank, text = statement.number("rank"), self._begin(statement.number("rank"))
                elif text is None:
                    raise _WrongStatement("a statement outside of any rank", valid="rank R {")
                elif "end" in statement.said:
                    text.end(self._source, rank)
                    self._job.add_rank(rank, text.assembler, self._source)
                    self._lines[rank] = text.lines
                    text = None
                else:
                    text.add(statement, rank, self._rank_count)
                    if statement.line % STATEMENTS_BETWEEN_CHECKS == 0:
                        operations = self._job.operation_count + len(text.assembler.operations)
                        check_memory(operations, f"{self._source}, line {statement.line}: rank {rank}")
            except (OperationsError, _WrongStatement) as error:
                raise TraceError(error, place=f"{self._source}, line {statement.line}") from None
        if text is not None:
            raise TraceError(f"rank {rank} does not end", place=self._source, valid="} at its end")
        return self._joined()

    def _set_rank_count(self, count: int) -> None:
        if self._rank_count or not 1 <= count <= MAX_RANKS:
            raise _WrongStatement(f"num_ranks {count}", valid=f"once, 1 to {MAX_RANKS}")
        self._rank_count = count

    def _begin(self, rank: int) -> _RankText:
        if rank >= self._rank_count:
            raise _WrongStatement(f"rank {rank}", valid=f"below num_ranks, {self._rank_count}")
        if rank in self._lines:
            raise _WrongStatement(f"rank {rank} occurs twice")
        return _RankText(self._options)

    def _joined(self) -> Job:
        missing = [str(rank) for rank in range(self._rank_count) if rank not in self._lines]
        if missing or not self._rank_count:
            what = f"ranks {', '.join(missing[:20])} are missing" if missing else "num_ranks is missing"
            raise TraceError(f"{what}", place=self._source)
        with translated(JobError, TraceError, place=self._source):
            return self._job.job()

    def place(self, rank: int, operation: int) -> str:
        """Return the file and the line of an operation."""
        return f"{self._source}, line {self._lines[rank][operation]}"

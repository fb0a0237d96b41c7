"""Traces of PyTorch's profiler (Kineto): Chrome trace JSON of each rank, with the arguments of collectives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from weft.cache import collector_paused
from weft.errors import translated
from weft.jobs.traces.assembling import MAX_RANKS
from weft.jobs.traces.calls.communicators import Communicators, strided
from weft.jobs.traces.calls.files import any_looks_like, files_of, rank_of_name
from weft.jobs.traces.calls.joining import MOST_NAMED, trace_of_calls
from weft.jobs.traces.calls.json_files import Fields, head_of, read_json, whole_numbers
from weft.jobs.traces.calls.recorded import EXCHANGE, MAX_COUNT, RECEIVE, SEND, Place, RecordedCall
from weft.jobs.traces.calls.torch_terms import TorchRecord, call_of_record, record_of
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_NS, PS_PER_US
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.jobs import JobError

_COLLECTIVE = "Collective name"
_PLACE = "Rank"
"""The place of the root or of the peer in the group."""
_RECORD = "record_param_comms"
_ANNOTATION = "nccl:"
_MOST_US = 1e17
_MOST_NS = 1 << 63


@dataclass(frozen=True, slots=True)
class _Event:
    """A call with its beginning and end."""

    call: RecordedCall
    begin_ps: int
    end_ps: int


class Kineto(TraceFormat):
    """Files of each rank: `distributedInfo` has the rank, else the name ends in it."""

    name = "kineto"
    title = "a trace of PyTorch's profiler"

    def recognises(self, path: Path) -> bool:
        """Return whether a file begins as a Chrome trace of PyTorch."""
        return any_looks_like(path, _looks_like_trace)

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job of the communication kernels and the time between them, or of the calls without kernels."""
        communicators = Communicators()
        readers: dict[int, _Reader] = {}
        for file in files_of(path):
            held = Fields(read_json(file), file)
            info = Fields(held.held.get("distributedInfo") or {}, f"{file}: distributedInfo")
            rank = info.integer("rank", 0, MAX_RANKS - 1) if "rank" in info else rank_of_name(file)
            if rank in readers:
                raise TraceError(f"another trace of rank {rank}", place=file)
            readers[rank] = _Reader(held, info, rank, communicators)
            readers[rank].read()
        calls = _timed(readers)
        notes = [note for note in _notes(readers) if note]
        with translated(JobError, TraceError, place=path):
            return trace_of_calls(path, calls, communicators.ranks, notes)


def _looks_like_trace(path: Path) -> bool:
    head = head_of(path)
    return head.lstrip().startswith(b"{") and (b'"schemaVersion"' in head or b'"traceEvents"' in head)


class _Reader:
    """Reads a rank's trace; `is_measured` says whether its times are those of kernels."""

    def __init__(self, held: Fields, info: Fields, rank: int, communicators: Communicators) -> None:
        self._held = held
        self._info = info
        self._rank = rank
        self._communicators = communicators
        self._base_ps = held.integer("baseTimeNanoseconds", 0, _MOST_NS, 0) * PS_PER_NS
        self._groups: dict[str, tuple[int, ...]] = {}
        self._listed: dict[str, tuple[int, ...]] = {}
        self.events: list[_Event] = []
        self.is_measured = False
        self.unknown_kernels = 0
        self.rootless = 0
        self.unsplit = 0

    def read(self) -> None:
        """Read the events. Raises TraceError, with the event."""
        for number, config in enumerate(self._info.items("pg_config", [])):
            fields = Fields(config, f"{self._info.place}: pg_config {number}")
            if "ranks" in fields and "pg_name" in fields:
                self._groups[fields.text("pg_name")] = fields.numbers("ranks", MAX_RANKS - 1)
        kernels, records, annotations = self._found()
        self.is_measured = bool(kernels)
        # Each source repeats the calls of the next one; older versions of PyTorch only have the last one.
        self.events = sorted(
            (event for held, place in kernels or records or annotations if (event := self._event(held, place))),
            key=lambda event: event.begin_ps,
        )

    def _found(self) -> tuple[list[tuple[Any, Place]], list[tuple[Any, Place]], list[tuple[Any, Place]]]:
        """Return the kernels of collectives, PyTorch's records of them, and its annotations."""
        kernels, records, annotations = [], [], []
        for number, held in enumerate(self._held.items("traceEvents")):
            if not isinstance(held, dict) or held.get("ph") != "X":
                continue
            name, arguments = held.get("name"), held.get("args")
            if not isinstance(name, str) or not isinstance(arguments, dict):
                continue
            place = Place(f"{self._held.place}: event", number)
            if held.get("cat") == "kernel":
                if _COLLECTIVE in arguments:
                    kernels.append((held, place))
                elif name.startswith("nccl"):
                    self.unknown_kernels += 1
            elif name == _RECORD and _COLLECTIVE in arguments:
                records.append((held, place))
            elif name.startswith(_ANNOTATION) and "Input Dims" in arguments:
                annotations.append((held, place))
        return kernels, records, annotations

    def _event(self, held: Any, place: Place) -> _Event | None:
        event, arguments = Fields(held, place), Fields(held["args"], place)
        is_full = _COLLECTIVE in arguments
        found = self._record(arguments, place) if is_full else self._annotated(event, arguments, place)
        if found is None:
            return None
        record, communicator = found
        call = call_of_record(record, communicator, place, self._communicators)
        if call.operation not in (SEND, RECEIVE, EXCHANGE):
            self.rootless += COLLECTIVE_KINDS[call.operation].has_root and _PLACE not in arguments
        self.unsplit += call.operation == "alltoall" and not is_full
        begin_ps = self._base_ps + round(event.number("ts", _MOST_US) * PS_PER_US)
        stream = communicator
        if self.is_measured:
            stream = str(arguments.integer("stream", 0, 1 << 62, 0))
        return _Event(
            replace(call, stream=stream), begin_ps, begin_ps + round(event.number("dur", _MOST_US, 0.0) * PS_PER_US)
        )

    def _record(self, arguments: Fields, place: Place) -> tuple[TorchRecord, str] | None:
        name = arguments.text(_COLLECTIVE)
        size = arguments.integer("Group size", 1, MAX_RANKS)
        # A record of a wait has no group, so the group is read only of other records.
        probe = record_of(name, arguments.text("dtype", ""), place, in_elements=0, out_elements=0, own=0, size=size)
        if probe is None:
            return None
        group = arguments.text("Process Group Name", "")
        ranks = self._ranks(arguments, group, size, place)
        communicator, own = self._communicators.joined(group, ranks, self._rank, place)
        record = replace(
            probe,
            in_elements=arguments.integer("In msg nelems", 0, MAX_COUNT, 0),
            out_elements=arguments.integer("Out msg nelems", 0, MAX_COUNT, 0),
            own=own,
            in_split=arguments.numbers("In split size", MAX_COUNT, []),
            out_split=arguments.numbers("Out split size", MAX_COUNT, []),
        )
        if record.operation in (SEND, RECEIVE):
            record = replace(record, root=self._peer(arguments, record, ranks))
        else:
            # Of a collective without a root it is the rank's own place.
            record = replace(record, root=arguments.integer(_PLACE, -1, MAX_RANKS - 1, 0))
        return record, communicator

    def _peer(self, arguments: Fields, record: TorchRecord, ranks: tuple[int, ...]) -> int:
        """Return a message's other end as a place in the group."""
        name = "Dst Rank" if record.operation == SEND else "Src Rank"
        if name not in arguments:
            return arguments.integer(_PLACE, 0, record.size - 1)
        peer = arguments.integer(name, 0, MAX_RANKS - 1)
        if peer not in ranks:
            raise TraceError(f"{name} is {peer}", place=arguments.place, valid=f"one of {list(ranks)[:MOST_NAMED]}")
        return ranks.index(peer)

    def _ranks(self, arguments: Fields, group: str, size: int, place: Place) -> tuple[int, ...]:
        """Return the ranks of a group: long lists are cut off, and have a start and a stride."""
        for ranks in self._candidates(arguments, group, size, place):
            if len(ranks) == size:
                return ranks
        raise TraceError(
            f"the ranks of process group {group!r} are not known",
            place=place,
            valid=f"{size} in Process Group Ranks, or in pg_config of distributedInfo",
        )

    def _candidates(self, arguments: Fields, group: str, size: int, place: Place) -> Iterator[tuple[int, ...]]:
        listed = arguments.held.get("Process Group Ranks")
        if isinstance(listed, str) and "..." not in listed:
            if listed not in self._listed:
                self._listed[listed] = whole_numbers(listed, MAX_RANKS - 1, place, "Process Group Ranks")
            yield self._listed[listed]
        yield self._groups.get(group, ())
        if "Global rank stride" in arguments and "Global rank start" in arguments:
            start = arguments.integer("Global rank start", -1, MAX_RANKS - 1)
            stride = arguments.integer("Global rank stride", -MAX_RANKS, MAX_RANKS)
            if start >= 0 and stride > 0 and start + stride * size <= MAX_RANKS + stride:
                yield strided(start, stride, size)
        if self._info.integer("world_size", 1, MAX_RANKS, 1) == size:
            yield strided(0, 1, size)

    def _annotated(self, event: Fields, arguments: Fields, place: Place) -> tuple[TorchRecord, str] | None:
        """Return the record of an annotation, which has the input alone; its group is of all ranks."""
        ranks = strided(0, 1, self._info.integer("world_size", 1, MAX_RANKS))
        communicator, own = self._communicators.joined("", ranks, self._rank, self._info.place)
        count = 0
        for shape in arguments.items("Input Dims"):
            count += prod(whole_numbers(shape, MAX_COUNT, place, "Input Dims")[:64])
        if count > MAX_COUNT:
            raise TraceError(f"{count} elements", place=place, valid=f"up to {MAX_COUNT}")
        types = arguments.items("Input type", [""])
        record = record_of(
            event.text("name"),
            types[0] if types and isinstance(types[0], str) else "",
            place,
            in_elements=count,
            out_elements=-(-count // len(ranks)),
            own=own,
            size=len(ranks),
        )
        if record is not None and record.operation in (SEND, RECEIVE):
            raise TraceError("a message without its other end", place=place, valid="records of a newer PyTorch")
        return None if record is None else (record, communicator)


def _timed(readers: dict[int, _Reader]) -> dict[int, list[RecordedCall]]:
    """Return the calls with times: measured ones on each rank's clock, others from the job's first call."""
    first_ps = min(
        (event.begin_ps for reader in readers.values() if not reader.is_measured for event in reader.events), default=0
    )
    calls = {}
    for rank, reader in sorted(readers.items()):
        own_ps = reader.events[0].begin_ps if reader.events else 0
        calls[rank] = [
            replace(event.call, ran_ps=(event.begin_ps - own_ps, event.end_ps - own_ps))
            if reader.is_measured
            else replace(event.call, start_ps=event.begin_ps - first_ps)
            for event in reader.events
        ]
    return calls


def _notes(readers: dict[int, _Reader]) -> Iterator[str]:
    if any(reader.is_measured for reader in readers.values()):
        yield (
            "a communication starts when the last one that had ended before it has ended, and the recorded time in "
            "between has passed; ranks start together"
        )
    if not all(reader.is_measured for reader in readers.values()):
        yield "without kernels, calls start when the processors' clocks had them issued, or later"
    if unknown := sum(reader.unknown_kernels for reader in readers.values() if reader.is_measured):
        yield f"kernels of NCCL without a collective's arguments, left out: {unknown}"
    if rootless := sum(reader.rootless for reader in readers.values()):
        yield f"roots are not recorded: rank 0 of the group in {counted(rootless, 'call')}"
    if any(reader.unsplit for reader in readers.values()):
        yield "shares of all-to-alls are not recorded: taken as equal"

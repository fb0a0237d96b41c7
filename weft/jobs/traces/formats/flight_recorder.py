"""Dumps of PyTorch's flight recorder (`TORCH_NCCL_TRACE_BUFFER_SIZE`): a pickle or JSON of each rank."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from weft.cache import collector_paused, read_bytes
from weft.errors import translated
from weft.jobs.traces.assembling import MAX_RANKS
from weft.jobs.traces.calls.communicators import Communicators
from weft.jobs.traces.calls.files import any_looks_like, files_of, rank_of_name
from weft.jobs.traces.calls.joining import trace_of_calls
from weft.jobs.traces.calls.json_files import MAX_JSON_BYTES, Fields, head_of, read_json
from weft.jobs.traces.calls.plain_pickle import read_plain_pickle
from weft.jobs.traces.calls.recorded import EXCHANGE, MAX_COUNT, RECEIVE, SEND, Place, RecordedCall
from weft.jobs.traces.calls.torch_terms import call_of_record, record_of
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_NS, shown
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.jobs import JobError

_PICKLE = b"\x80"
_MOST_NS = 1 << 63
_MESSAGE = re.compile(r"(?:\w+:)?(send|recv) (\d{1,9})(?:->|<-)(\d{1,9})")
_COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A call, by which ranks of a group know it: `number` of a collective, -1 of a message."""

    call: RecordedCall
    number: tuple[int, int]
    created_ns: int
    is_completed: bool


class FlightRecorder(TraceFormat):
    """Files of each rank, with names that end in the rank."""

    name = "flight_recorder"
    title = "PyTorch's flight recorder"

    def recognises(self, path: Path) -> bool:
        """Return whether a file begins as a dump."""
        return any_looks_like(path, _looks_like_dump)

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job of the calls that all dumps of a group have."""
        communicators = Communicators()
        entries: dict[int, list[_Entry]] = {}
        rootless = 0
        for file in files_of(path):
            dump = Fields(_content(file), file)
            rank = dump.integer("rank", 0, MAX_RANKS - 1) if "rank" in dump else rank_of_name(file)
            if rank in entries:
                raise TraceError(f"another dump of rank {rank}", place=file)
            reader = _Reader(dump, rank, communicators)
            entries[rank] = reader.read()
            rootless += reader.rootless
        notes = []
        left_out = _leave_out_partial(entries, communicators)
        if left_out:
            notes.append(f"{counted(left_out, 'call')} that not all dumps of their group have: left out")
        if rootless:
            notes.append(f"roots are not recorded: rank 0 of the group in {counted(rootless, 'call')}")
        if any(entry.call.operation == "alltoall" for each in entries.values() for entry in each):
            notes.append("shares of all-to-alls are not recorded: taken as equal")
        notes.append("calls start when the ranks' clocks had them created, or later; computation is not recorded")
        first_ns = min((entry.created_ns for each in entries.values() for entry in each), default=0)
        calls = {
            rank: [replace(each.call, start_ps=(each.created_ns - first_ns) * PS_PER_NS) for each in of_rank]
            for rank, of_rank in sorted(entries.items())
        }
        with translated(JobError, TraceError, place=path):
            return trace_of_calls(path, calls, communicators.ranks, notes)


def _looks_like_dump(path: Path) -> bool:
    head = head_of(path)
    if head.startswith(_PICKLE):
        return b"pg_config" in head or b"entries" in head
    # Traces of PyTorch's profiler have groups, too.
    is_dump = b'"pg_config"' in head or (b'"entries"' in head and b'"record_id"' in head)
    return head.lstrip().startswith(b"{") and is_dump and b'"schemaVersion"' not in head


def _content(file: Path) -> Any:
    head = head_of(file)
    return read_plain_pickle(read_bytes(file, MAX_JSON_BYTES), file) if head.startswith(_PICKLE) else read_json(file)


class _Reader:
    """Reads a rank's dump; `rootless` counts calls that have a root."""

    def __init__(self, dump: Fields, rank: int, communicators: Communicators) -> None:
        self._dump = dump
        self._rank = rank
        self._communicators = communicators
        self._groups: dict[str, tuple[int, ...]] = {}
        self._repeated: Counter[tuple[str, int]] = Counter()
        self.rootless = 0

    def read(self) -> list[_Entry]:
        """Return the rank's entries, in order."""
        configs = Fields(self._dump.held.get("pg_config", {}), f"{self._dump.place}: pg_config")
        for key, held in configs.held.items():
            group = Fields({"name": str(key)}, configs.place).text("name")
            config = Fields(held, f"{configs.place} {group}")
            ranks = config.numbers("ranks", MAX_RANKS - 1)
            self._groups[group] = self._groups[config.text("name", group)] = ranks
        entries = []
        for number, held in enumerate(self._dump.items("entries")):
            place = Place(f"{self._dump.place}: entry", number)
            entry = self._entry(Fields(held, place), place)
            if entry is not None:
                entries.append(entry)
        return entries

    def _entry(self, entry: Fields, place: Place) -> _Entry | None:
        group = entry.items("process_group")
        ranks = self._groups.get(group[0]) if group and isinstance(group[0], str) else None
        if not ranks:
            raise TraceError(f"process_group {shown(group[:1])}", place=place, valid="one of pg_config, with its ranks")
        communicator, own = self._communicators.joined(group[0], ranks, self._rank, place)
        name = entry.text("profiling_name")
        message = _MESSAGE.fullmatch(name)
        record = record_of(
            message[1] if message else name,
            _first_text(entry, "input_dtypes") or _first_text(entry, "output_dtypes"),
            place,
            in_elements=_elements(entry, "input_sizes"),
            out_elements=_elements(entry, "output_sizes"),
            own=own,
            size=len(ranks),
        )
        if record is None:
            return None
        if message:
            record = replace(record, root=int(message[3]))
        call = call_of_record(record, communicator, place, self._communicators)
        number = -1
        key = "p2p_seq_id" if message else "collective_seq_id"
        sequence = entry.integer(key, 0, _MOST_NS)
        if call.operation not in (SEND, RECEIVE):
            number = sequence
            self.rootless += COLLECTIVE_KINDS[call.operation].has_root if call.operation != EXCHANGE else 0
        repeated = self._repeated[communicator, number]
        self._repeated[communicator, number] += 1
        return _Entry(
            # PyTorch has a stream for each process group. Calls of a batch have the same number.
            replace(call, stream=communicator, group=f"{key} {sequence}"),
            (number, repeated if number >= 0 else 0),
            entry.integer("time_created_ns", 0, _MOST_NS),
            entry.text("state", _COMPLETED) == _COMPLETED,
        )


def _first_text(entry: Fields, name: str) -> str:
    held = entry.items(name, [])
    return held[0] if held and isinstance(held[0], str) else ""


def _elements(entry: Fields, name: str) -> int:
    count = 0
    for shape in entry.items(name, []):
        sizes = Fields({name: shape}, entry.place).numbers(name, MAX_COUNT)
        if len(sizes) > 64:
            raise TraceError(f"{name} of {len(sizes)} dimensions", place=entry.place, valid="up to 64")
        count += prod(sizes)
    if count > MAX_COUNT:
        raise TraceError(f"{name} of {count} elements", place=entry.place, valid=f"up to {MAX_COUNT}")
    return count


def _leave_out_partial(entries: dict[int, list[_Entry]], communicators: Communicators) -> int:
    """Leave out collectives that not all dumps of a group have, and messages without their other end; count them.

    Dumps have the last calls of each rank, and the ranks of a job that hangs do not end at the same call.
    """
    held: dict[str, list[set[tuple[int, int]]]] = {}
    ends: dict[tuple[str, int, int], Counter[str]] = {}
    for rank, of_rank in entries.items():
        numbers: dict[str, set[tuple[int, int]]] = {}
        for entry in of_rank:
            call = entry.call
            if call.operation not in (SEND, RECEIVE):
                numbers.setdefault(call.communicator, set()).add(entry.number)
            elif entry.is_completed:
                ends.setdefault(_ends(rank, call, communicators), Counter())[call.operation] += 1
        for name, ranks in communicators.ranks.items():
            if rank in ranks:
                held.setdefault(name, []).append(numbers.get(name, set()))
    common = {name: set.intersection(*each) for name, each in held.items()}
    before = sum(map(len, entries.values()))
    for rank, of_rank in entries.items():
        entries[rank] = _kept(rank, of_rank, common, ends, communicators, entries.keys())
    return before - sum(map(len, entries.values()))


def _kept(
    rank: int,
    of_rank: Sequence[_Entry],
    common: dict[str, set[tuple[int, int]]],
    ends: dict[tuple[str, int, int], Counter[str]],
    communicators: Communicators,
    recorded: Any,
) -> list[_Entry]:
    seen: Counter[tuple[tuple[str, int, int], str]] = Counter()
    kept = []
    # The last messages of both ends belong together: dumps lose the first ones.
    for entry in reversed(of_rank):
        call = entry.call
        if call.operation not in (SEND, RECEIVE):
            if entry.number in common[call.communicator]:
                kept.append(entry)
            continue
        if not entry.is_completed:
            continue
        pair = _ends(rank, call, communicators)
        is_alone = not {pair[1], pair[2]} <= set(recorded)
        seen[pair, call.operation] += 1
        if is_alone or seen[pair, call.operation] <= min(ends[pair][SEND], ends[pair][RECEIVE]):
            kept.append(entry)
    return kept[::-1]


def _ends(rank: int, call: RecordedCall, communicators: Communicators) -> tuple[str, int, int]:
    """Return the communicator, sender and receiver of a message."""
    peer = communicators.ranks[call.communicator][call.root]
    return (call.communicator, rank, peer) if call.operation == SEND else (call.communicator, peer, rank)

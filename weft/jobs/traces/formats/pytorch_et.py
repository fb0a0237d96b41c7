"""PyTorch's execution traces (ExecutionTraceObserver): JSON of each rank, which PARAM's et_replay reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from weft.cache import collector_paused
from weft.errors import translated
from weft.jobs.traces.assembling import MAX_RANKS
from weft.jobs.traces.calls.communicators import Communicators, strided
from weft.jobs.traces.calls.files import any_looks_like, files_of, rank_of_name
from weft.jobs.traces.calls.joining import trace_of_calls
from weft.jobs.traces.calls.json_files import Fields, head_of, read_json, whole_number, whole_numbers
from weft.jobs.traces.calls.recorded import MAX_COUNT, Place
from weft.jobs.traces.calls.torch_terms import call_of_record, record_of
from weft.jobs.traces.calls.waits import WaitOrder
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.traffic.jobs import JobError

_RECORD = "record_param_comms"
_GROUPS = "process_group:init"
_MOST_REQUEST = 1 << 63
_MOST_DIMENSIONS = 64


class PytorchEt(TraceFormat):
    """Files of each rank, with names that end in the rank."""

    name = "pytorch_et"
    title = "PyTorch's execution trace"

    def recognises(self, path: Path) -> bool:
        """Return whether a file begins as an execution trace."""
        return any_looks_like(path, _looks_like_trace)

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job of all communication nodes. Those of a process group follow each other, and waits."""
        communicators, files, notes = Communicators(), files_of(path), []
        # A single file may have any name.
        alone = 0 if len(files) == 1 else None
        ranks = [rank_of_name(file, alone) for file in files]
        if len(set(ranks)) < len(ranks):
            raise TraceError("two files of a rank", place=path, valid="names that end in the rank")
        readers = {
            rank: _Reader(file, rank, tuple(sorted(ranks)), communicators)
            for rank, file in sorted(zip(ranks, files, strict=True))
        }
        calls = {rank: reader.read() for rank, reader in readers.items()}
        if any(reader.is_groupless for reader in readers.values()):
            notes.append("process groups are not recorded: taken as one of all files' ranks")
        if alone == 0 and rank_of_name(files[0], MAX_RANKS) == MAX_RANKS:
            notes.append("the file's name does not end in the rank: taken as 0")
        notes.append("durations are not recorded, so calls follow each other without computation in between")
        with translated(JobError, TraceError, place=path):
            return trace_of_calls(path, calls, communicators.ranks, notes)


def _looks_like_trace(path: Path) -> bool:
    head = head_of(path)
    return head.lstrip().startswith(b"{") and b'"schema"' in head and (b'"nodes"' in head or b'"start_ts"' in head)


class _Reader:
    """Reads a rank's trace; `is_groupless` says whether a process group was not recorded."""

    def __init__(self, file: Path, rank: int, ranks: tuple[int, ...], communicators: Communicators) -> None:
        self._file = file
        self._rank = rank
        self._ranks = ranks
        self._communicators = communicators
        self._groups: dict[str, tuple[int, ...]] = {}
        self.is_groupless = False

    def read(self) -> Sequence[Any]:
        """Return the rank's calls, in order. Raises TraceError, with the node."""
        records = []
        for number, held in enumerate(Fields(read_json(self._file), self._file).items("nodes")):
            name = held.get("name") if isinstance(held, dict) else None
            if not isinstance(name, str) or (name != _RECORD and _GROUPS not in name):
                continue
            place = Place(f"{self._file}: node", whole_number(held.get("id", number), 0, 1 << 63, self._file, "id"))
            node = _Node(Fields(held, place), place)
            if name == _RECORD:
                records.append(node)
            else:
                self._add_groups(node)
        order = WaitOrder()
        waited = {node.request for node in records if node.is_wait}
        for node in records:
            if node.is_wait:
                order.wait(node.request)
            else:
                self._add_call(node, order, node.request not in waited)
        return order.calls

    def _add_groups(self, node: _Node) -> None:
        texts = node.values
        try:
            groups = json.loads(texts[0]) if texts and isinstance(texts[0], str) else []
        except (ValueError, RecursionError):
            return  # PyTorch cuts off long lists; calls have the group's start and stride, too.
        for number, held in enumerate(groups if isinstance(groups, list) else ()):
            group = Fields(held, f"{node.place}: group {number}")
            size = group.integer("group_size", 0, MAX_RANKS, 0)
            ranks = group.numbers("ranks", MAX_RANKS - 1, []) or strided(0, 1, size)
            if ranks:
                self._groups[group.text("pg_name")] = ranks

    def _add_call(self, node: _Node, order: WaitOrder, is_waited: bool) -> None:
        ranks = self._ranks_of(node)
        communicator, own = self._communicators.joined(node.group, ranks, self._rank, node.place)
        record = record_of(
            node.collective,
            node.datatype,
            node.place,
            in_elements=node.elements("in"),
            out_elements=node.elements("out"),
            own=own,
            size=len(ranks),
        )
        if record is None:
            return
        record = replace(record, root=node.root, in_split=node.split("in"), out_split=node.split("out"))
        call = call_of_record(record, communicator, node.place, self._communicators)
        order.issue(call, node.request, is_waited=is_waited)

    def _ranks_of(self, node: _Node) -> tuple[int, ...]:
        """Return the ranks of a node's group: as recorded, by start and stride, else all."""
        size = node.group_size
        for ranks in self._candidates(node, size):
            if ranks and size in (0, len(ranks)):
                return ranks
        if size in (0, len(self._ranks)) and self._rank in self._ranks:
            self.is_groupless = True
            return self._ranks
        raise TraceError(
            f"the ranks of process group {node.group!r} are not known",
            place=node.place,
            valid=f"{size} in the node {_GROUPS}, or files of all ranks",
        )

    def _candidates(self, node: _Node, size: int) -> Iterator[tuple[int, ...]]:
        yield self._groups.get(node.group, ())
        start, stride = node.attribute("global_rank_start", 0), node.attribute("global_rank_stride", 0)
        if size == 1:
            yield strided(self._rank, 1, 1)
        elif stride and start + stride * (size - 1) < MAX_RANKS:
            yield strided(start, stride, size)


class _Node:
    """A node of communication, of any version of the schema: fields of a list, or attributes by name."""

    def __init__(self, held: Fields, place: Place) -> None:
        self.place = place
        self._held = held
        self._attributes: dict[str, Any] = {}
        for each in held.items("attrs", []):
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                self._attributes[each["name"]] = each.get("value")
        self._is_nested = isinstance(held.held.get("inputs"), dict)
        self.values = self._list("inputs", "values", "inputs")
        # Without tensors the first value is the request: a number, or a number and whether it is a message.
        self._base = 0 if self.values and _is_request(self.values[0]) else 1

    def _list(self, side: str, nested: str, plain: str) -> list[Any]:
        if self._is_nested:
            return Fields(self._held.held.get(side), self.place).items(nested, [])
        return self._held.items(plain, [])

    def _value(self, number: int) -> Any:
        number += self._base
        return self.values[number] if number < len(self.values) else None

    def attribute(self, name: str, default: int) -> int:
        """Return a whole number of the attributes."""
        return whole_number(self._attributes.get(name, default), 0, MAX_COUNT, self.place, name)

    @property
    def request(self) -> tuple[int, ...]:
        """The number of the request, and whether it is a message."""
        value = self._value(0)
        pair = value if isinstance(value, list) else [value, False]
        if not _is_request(value):
            raise TraceError("no number of a request", place=self.place)
        return int(pair[0]), int(pair[1])

    @property
    def collective(self) -> str:
        """PyTorch's name of the collective."""
        name = self._attributes.get("collective_name", self._value(3))
        if not isinstance(name, str):
            raise TraceError("no name of a collective", place=self.place)
        return name

    @property
    def is_wait(self) -> bool:
        """Whether it waits for a request."""
        return self.collective.lower() == "wait"

    @property
    def root(self) -> int:
        """The place of the root or of the peer in the group; of other collectives the rank's own."""
        return whole_number(self._value(2) or 0, 0, MAX_RANKS - 1, self.place, "rank")

    @property
    def group(self) -> str:
        """The name of the process group, "" if it has none."""
        held = self._value(1)
        name = self._attributes.get("pg_name") or (held[0] if isinstance(held, list) and held else "")
        return Fields({"pg_name": name}, self.place).text("pg_name", "")

    @property
    def group_size(self) -> int:
        """Ranks of the process group, 0 if not recorded."""
        return self.attribute("pg_size", 0)

    @property
    def datatype(self) -> str:
        """PyTorch's name of the elements' type."""
        name = self._attributes.get("dtype")
        if isinstance(name, str):
            return name
        for side in ("input", "output"):
            types = self._list(f"{side}s", "types", f"{side}_types")
            if types and isinstance(types[0], str) and "Tensor(" in types[0]:
                return types[0].partition("Tensor(")[2].partition(")")[0]
        return ""

    def elements(self, side: str) -> int:
        """Return the elements of all inputs ("in") or outputs ("out")."""
        known = self._attributes.get(f"{side}_msg_nelems")
        if known is not None:
            return whole_number(known, 0, MAX_COUNT, self.place, f"{side}_msg_nelems")
        if side == "in" and not self._base:
            return 0
        shapes = self._list(f"{side}puts", "shapes", f"{side}put_shapes")[:1]
        # A list of tensors has a list of shapes.
        if shapes and isinstance(shapes[0], list) and shapes[0] and isinstance(shapes[0][0], list):
            shapes = shapes[0]
        count = 0
        for shape in shapes:
            count += prod(whole_numbers(shape, MAX_COUNT, self.place, "shape")[:_MOST_DIMENSIONS])
        return whole_number(count, 0, MAX_COUNT, self.place, "elements")

    def split(self, side: str) -> tuple[int, ...]:
        """Return the shares of the input ("in") or the output ("out") for each rank; empty if equal."""
        held = self._attributes.get(f"{side}_split_size", self._value(4 if side == "in" else 5))
        return whole_numbers(held or [], MAX_COUNT, self.place, f"{side}_split_size")


def _is_request(value: Any) -> bool:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], bool):
        value = value[0]
    return type(value) is int and 0 <= value < _MOST_REQUEST

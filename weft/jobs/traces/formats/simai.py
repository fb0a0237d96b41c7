"""Workloads of SimAI and AICB: a header with degrees of parallelism, and a line of times and sizes for each layer."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.cache import collector_paused
from weft.errors import InvalidValueError, translated
from weft.jobs.traces.assembling import MAX_RANKS, check_count, whole_call
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.tables.lines import first_lines, lines_of, whole
from weft.quantities.units import PS_PER_NS, shown
from weft.traffic.jobs import NO_STREAM, CollectiveCall, Group, Job, JobError, OperationsBuilder, RankPart
from weft.traffic.jobs.operations import MAX_SIZE_BYTES

_MICRO = "MICRO"
_POLICIES = ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER", _MICRO)
_TENSOR, _DATA, _EXPERT, _EXPERT_DATA = range(4)
_CATEGORIES = ("tensor", "data", "expert", "expert data")
_SUFFIXES = {"": None, "_EP": _EXPERT, "_DP_EP": _EXPERT_DATA}
"""Kinds of groups by the ends of types; without an end it depends on the pass."""
_COLLECTIVES = {
    "ALLREDUCE": "allreduce", "ALLGATHER": "allgather", "REDUCESCATTER": "reducescatter", "ALLTOALL": "alltoall",
}  # fmt: skip
_NONE = "NONE"
MAX_LAYERS = 1_000_000
_MOST_NS = 10**15
_LAYER = "name dependency (time type size) of forward, input gradient and weight gradient, update time"
_COLUMNS = 12
_KEY = re.compile(r"[A-Za-z_]{1,60}:?")
_OPERATIONS_PER_LAYER = 7


@dataclass(frozen=True)
class _Header:
    """The first line; `checkpoints` are layers from which `initiates` recompute the forward pass."""

    policy: str
    ranks: int
    tensor: int
    expert: int
    pipeline: int
    checkpoints: tuple[int, ...]
    initiates: frozenset[int]

    def recomputed_from(self, layer: int) -> int:
        """Return the checkpoint from which a layer recomputes the forward pass."""
        return self.checkpoints[bisect_right(self.checkpoints, layer) - 1]


@dataclass(frozen=True)
class _Pass:
    """A computation and the collective after it; `group` is a slot."""

    duration_ps: int
    collective: str
    size_bytes: int
    group: int


@dataclass(frozen=True)
class _Layer:
    """A line: the passes and the time of the update."""

    line: int
    forward: _Pass
    input_gradient: _Pass
    weight_gradient: _Pass
    update_ps: int


class SimAI(TraceFormat):
    """A text file, the same for all ranks."""

    name = "simai"
    title = "a workload of SimAI"

    def recognises(self, path: Path) -> bool:
        """Return whether the first line begins with a policy of SimAI."""
        words = " ".join(first_lines(path)[:1]).split()[:1]
        return bool(words) and words[0] in _POLICIES

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job of one training step, or of all collectives of a micro benchmark."""
        header, layers = _read(path)
        again = sum(number - header.recomputed_from(number) for number in header.initiates)
        check_count(header.ranks * (len(layers) + again) * _OPERATIONS_PER_LAYER, 0, str(path))
        writer = _Writer(path, header)
        if header.policy == _MICRO:
            for layer in layers:
                writer.blocking(layer, layer.weight_gradient, "weights")
        else:
            _add_step(writer, header, layers)
        operations = writer.builder.build()
        groups, slots = writer.groups()
        parts = tuple(RankPart(operations, (), each) for each in slots)
        with translated(JobError, TraceError, place=path):
            job = Job(path.stem, parts, groups, tuple(writer.calls))
        notes = []
        if header.pipeline > 1:
            notes.append(
                f"pp: {header.pipeline} is not read: as in SimAI's simulation, all ranks have all layers, and "
                "data parallelism has the ranks that tensor parallelism leaves"
            )
        return Trace(job, locate=lambda _, operation: f"{path}, line {writer.lines[operation]}", notes=notes)


def _add_step(writer: _Writer, header: _Header, layers: Sequence[_Layer]) -> None:
    """Add a step as SimAI runs it: forward, then both gradients of each layer; weights' collectives block nothing."""
    for layer in layers:
        writer.blocking(layer, layer.forward, "forward")
    for number in range(len(layers) - 1, -1, -1):
        layer = layers[number]
        if number in header.initiates:
            for again in layers[header.recomputed_from(number) : number]:
                writer.blocking(again, again.forward, "recomputation")
        writer.blocking(layer, layer.input_gradient, "backward")
        writer.beside(layer, layer.weight_gradient, "backward")


@dataclass
class _Writer:
    """Writes the program that all ranks share: groups are slots."""

    path: Path
    header: _Header
    builder: OperationsBuilder = field(default_factory=OperationsBuilder)
    calls: list[CollectiveCall] = field(default_factory=list)
    lines: array[int] = field(default_factory=lambda: array("q"))
    _numbers: dict[CollectiveCall, int] = field(default_factory=dict)
    _slots: dict[int, int] = field(default_factory=dict)
    _last: list[int] = field(default_factory=list)
    _last_beside: list[int] = field(default_factory=list)

    def blocking(self, layer: _Layer, each: _Pass, category: str) -> None:
        """Add a pass that the next one follows."""
        self._compute(layer, each.duration_ps, category)
        added = self._collective(layer, each, self._last)
        self._last = added or self._last

    def beside(self, layer: _Layer, each: _Pass, category: str) -> None:
        """Add a pass with a collective that only the update and the next such collective follow."""
        self._compute(layer, each.duration_ps, category)
        added = self._collective(layer, each, [*self._last, *self._last_beside])
        if added:
            self._last_beside = added
            if layer.update_ps:
                self._note(
                    layer,
                    self.builder.compute(layer.update_ps, stream=NO_STREAM, after=added, category="update"),
                )

    def _compute(self, layer: _Layer, duration_ps: int, category: str) -> None:
        if duration_ps:
            self._last = [self._note(layer, self.builder.compute(duration_ps, after=self._last, category=category))]

    def _note(self, layer: _Layer, operation: int) -> int:
        self.lines.append(layer.line)
        return operation

    def _collective(self, layer: _Layer, each: _Pass, after: list[int]) -> list[int]:
        size = self._size(each.group)
        if not each.collective:
            return []
        with translated(ValueError, TraceError, place=f"{self.path}, line {layer.line}"):
            call = whole_call(each.collective, each.size_bytes, size)
        if call is None:
            return []
        if call not in self._numbers:
            self._numbers[call] = len(self.calls)
            self.calls.append(call)
        slot = self._slots.setdefault(each.group, len(self._slots))
        category = _CATEGORIES[each.group]
        added = self.builder.collective(slot, self._numbers[call], after=after, category=category)
        return [self._note(layer, added)]

    def _size(self, kind: int) -> int:
        header = self.header
        data = header.ranks // header.tensor
        return (header.tensor, data, header.expert, data // header.expert)[kind]

    def groups(self) -> tuple[tuple[Group, ...], list[tuple[int, ...]]]:
        """Return the groups in use, and for each rank its group in each slot."""
        groups: list[Group] = []
        slots: list[list[int]] = [[] for _ in range(self.header.ranks)]
        for kind in self._slots:
            members: dict[tuple[int, ...], list[int]] = {}
            for rank in range(self.header.ranks):
                members.setdefault(self._key(kind, rank), []).append(rank)
            for number, ranks in enumerate(members.values()):
                for rank in ranks:
                    slots[rank].append(len(groups))
                groups.append(Group(f"{_CATEGORIES[kind]} {number}", tuple(ranks)))
        return tuple(groups), [tuple(each) for each in slots]

    def _key(self, kind: int, rank: int) -> tuple[int, ...]:
        """Return what the ranks of a group share; tensor groups have consecutive ranks, expert groups the next ones."""
        place, local = divmod(rank, self.header.tensor)
        replica, expert = divmod(place, self.header.expert)
        return {_TENSOR: (place,), _DATA: (local,), _EXPERT: (local, replica), _EXPERT_DATA: (local, expert)}[kind]


def _read(path: Path) -> tuple[_Header, list[_Layer]]:
    header: _Header | None = None
    count: int | None = None
    layers: list[_Layer] = []
    for number, line in enumerate(lines_of(path), 1):
        words = line.split()
        if not words:
            continue
        place = f"{path}, line {number}"
        with translated(ValueError, TraceError, place=place):
            if header is None:
                header = _header(words)
            elif count is None:
                count = whole(1, MAX_LAYERS)(words[0])
            elif len(layers) < count:
                layers.append(_layer(words, number, header))
            else:
                raise TraceError(f"more than {count} layers", place=place, valid=f"{count}, as line 2 says")
    if header is None or count is None or len(layers) != count:
        raise TraceError(f"{len(layers)} layers", place=path, valid=f"a header, and {count or 1} layers")
    if header.initiates and max(header.initiates) >= count:
        raise TraceError(f"checkpoint_initiates has layer {max(header.initiates)}", place=path, valid=f"below {count}")
    return header, layers


def _header(words: list[str]) -> _Header:
    if words[0] not in _POLICIES:
        raise InvalidValueError(f"{shown(words[0])}", valid=_POLICIES)
    numbers: dict[str, list[str]] = {}
    key = ""
    for word in words[1:]:
        if _KEY.fullmatch(word):
            key = word.removesuffix(":")
            numbers[key] = []
        elif key:
            numbers[key].append(word)

    def degree(name: str, default: int) -> int:
        return whole(1, MAX_RANKS)(numbers[name][0]) if numbers.get(name) else default

    if not numbers.get("all_gpus"):
        raise InvalidValueError("all_gpus is missing, so the number of ranks is not known", valid="all_gpus: RANKS")
    ranks = degree("all_gpus", 1)
    tensor, expert = degree("model_parallel_NPU_group", ranks), degree("ep", 1)
    for what, of, degree_of in (("model_parallel_NPU_group", ranks, tensor), ("ep", ranks // tensor, expert)):
        if of % degree_of:
            raise InvalidValueError(f"{what}: {degree_of} of {of} ranks", valid=f"a divisor of {of}")
    checkpoints, initiates = _listed(numbers, "checkpoints"), _listed(numbers, "checkpoint_initiates")
    if initiates and (not checkpoints or min(initiates) < min(checkpoints)):
        raise InvalidValueError(f"checkpoint_initiates has layer {min(initiates)} before any of checkpoints")
    return _Header(words[0], ranks, tensor, expert, degree("pp", 1), tuple(sorted(checkpoints)), initiates)


def _listed(numbers: dict[str, list[str]], name: str) -> frozenset[int]:
    """Return the layers that follow their count."""
    words = numbers.get(name) or ["0"]
    count = whole(0, MAX_LAYERS)(words[0])
    if len(words) - 1 < count:
        raise InvalidValueError(f"{name}: {count} and {len(words) - 1} layers", valid=f"{count} layers")
    return frozenset(map(whole(0, MAX_LAYERS - 1), words[1 : count + 1]))


def _layer(words: list[str], line: int, header: _Header) -> _Layer:
    if len(words) != _COLUMNS:
        raise InvalidValueError(f"{len(words)} words", valid=f"{_COLUMNS}: {_LAYER}")
    duration = whole(0, _MOST_NS)

    def part(first: int, kind: int) -> _Pass:
        collective, group = _type(words[first + 1], kind)
        size = whole(0, MAX_SIZE_BYTES)
        return _Pass(duration(words[first]) * PS_PER_NS, collective, size(words[first + 2]), group)

    # A micro benchmark has no header of degrees: its collectives are of all ranks.
    weights = _TENSOR if header.policy == _MICRO and header.tensor == header.ranks else _DATA
    return _Layer(line, part(2, _TENSOR), part(5, _TENSOR), part(8, weights), duration(words[11]) * PS_PER_NS)


def _type(text: str, kind: int) -> tuple[str, int]:
    """Return the collective, "" for none, and the kind of its group."""
    if text == _NONE:
        return "", kind
    for suffix in ("_DP_EP", "_EP", ""):
        name = text.removesuffix(suffix)
        if text.endswith(suffix) and name in _COLLECTIVES:
            group = _SUFFIXES[suffix]
            return _COLLECTIVES[name], kind if group is None else group
    valid = f"{_NONE}, or {', '.join(_COLLECTIVES)}, each also with _EP or _DP_EP"
    raise InvalidValueError(f"type {shown(text)}", valid=valid)

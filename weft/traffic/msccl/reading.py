"""Reads an algorithm of MSCCL: XML with the steps of each thread block of each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from weft.engine import ExtensionError
from weft.quantities.units import shown

MAX_FILE_BYTES = 1 << 28
MAX_RANKS = 1024
MAX_CHUNKS = 1 << 16
MAX_STEPS = 1 << 20
COLLECTIVES = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "alltoall": "alltoall",
    "reduce_scatter": "reducescatter",
    "reducescatter": "reducescatter",
}
"""Weft's collectives by MSCCL's names."""
SENDING = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVING = frozenset({"r", "rcs", "rrc", "rrs", "rrcs"})
TYPES = (*sorted(SENDING | RECEIVING), "cpy", "re", "nop")
_PARENTS = {"algo": "", "gpu": "algo", "tb": "gpu", "step": "tb"}
_BUFFERS = ("i", "o", "s")


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of a buffer: "i" (input), "o" (output) or "s" (scratch)."""

    buffer: str
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a thread block; `after` is the block and the step that it waits for, in addition to the one before."""

    kind: str
    source: Chunks
    destination: Chunks
    after: tuple[int, int] | None
    line: int


@dataclass
class Block:
    """A thread block: its steps, one after the other, with one peer for sends and one for receives, -1 for none."""

    number: int
    send: int
    receive: int
    channel: int
    steps: list[Step] = field(default_factory=list)


@dataclass
class Gpu:
    """A rank: its thread blocks by number, and the chunks of its buffers."""

    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    blocks: dict[int, Block] = field(default_factory=dict)

    def chunks(self, buffer: str) -> int:
        """Return how many chunks a buffer has."""
        return {"i": self.input_chunks, "o": self.output_chunks, "s": self.scratch_chunks}[buffer]


@dataclass
class MscclAlgorithm:
    """An algorithm: Weft's name of the collective, the chunks of its data, and its ranks."""

    name: str
    collective: str
    chunks: int
    is_in_place: bool
    gpus: list[Gpu]


def read_msccl(path: Path) -> MscclAlgorithm:
    """Return a file's algorithm. Raises ExtensionError, with the line."""
    # A pipe or a device would wait for a writer, or never end.
    if not path.is_file():
        raise ExtensionError(f"{path}: there is no such file")
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ExtensionError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ExtensionError(f"{path}: the file is larger than {MAX_FILE_BYTES} bytes")
    return _Reader(path).read(data)


class _Reader:
    """Reads elements as expat finds them, without DTDs, and so without entities."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[str] = []
        self._algorithm: MscclAlgorithm | None = None
        self._ranks = 0
        self._gpus: dict[int, Gpu] = {}
        self._gpu: Gpu | None = None
        self._block: Block | None = None
        self._steps = 0
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def read(self, data: bytes) -> MscclAlgorithm:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            raise self._error(f"is not XML: {expat.ErrorString(error.code)}", error.lineno) from None
        except ExtensionError:
            raise  # It is a ValueError, too.
        except (LookupError, ValueError) as error:
            raise self._error(f"cannot be decoded: {error}") from None
        algorithm = self._algorithm
        if algorithm is None or len(self._gpus) != self._ranks:
            raise self._error(f"has {len(self._gpus)} gpu elements", valid=f"ngpus: {self._ranks}")
        algorithm.gpus.extend(self._gpus[rank] for rank in range(self._ranks))
        self._check_sizes(algorithm)
        return algorithm

    def _check_sizes(self, algorithm: MscclAlgorithm) -> None:
        ranks = len(algorithm.gpus)
        parts = {
            "allreduce": (1, 1), "alltoall": (1, 1), "allgather": (ranks, 1), "reducescatter": (1, ranks),
        }[algorithm.collective]  # fmt: skip
        for rank, gpu in enumerate(algorithm.gpus):
            found = (gpu.input_chunks * parts[0], gpu.output_chunks * parts[1])
            # An all-reduce in place may name its one buffer either way.
            wanted = {algorithm.chunks, 0} if algorithm.is_in_place else {algorithm.chunks}
            if not set(found) <= wanted or not any(found) or algorithm.chunks % ranks * (max(parts) > 1):
                raise self._error(
                    f"gpu {rank} has {gpu.input_chunks} input and {gpu.output_chunks} output chunks",
                    valid=f"those of {algorithm.collective} with nchunksperloop={algorithm.chunks}",
                )
            for block in gpu.blocks.values():
                for step in block.steps:
                    self._check_step(algorithm, gpu, block, step)

    def _check_step(self, algorithm: MscclAlgorithm, gpu: Gpu, block: Block, step: Step) -> None:
        for uses, peer, what in (
            (step.kind in SENDING, block.send, "send"),
            (step.kind in RECEIVING, block.receive, "recv"),
        ):
            if uses and not 0 <= peer < len(algorithm.gpus):
                raise self._error(f"a step {step.kind} with {what}={peer}", step.line, f"below {len(algorithm.gpus)}")
        for chunks in used_chunks(step):
            most = gpu.chunks(chunks.buffer)
            if algorithm.is_in_place and chunks.buffer != "s":
                most = max(gpu.input_chunks, gpu.output_chunks)
            if chunks.offset < 0 or chunks.count < 1 or chunks.offset + chunks.count > most:
                raise self._error(
                    f"chunks {chunks.offset} to {chunks.offset + chunks.count - 1} of buffer {chunks.buffer}",
                    step.line,
                    f"0 to {most - 1}",
                )
        if step.after is not None:
            other = gpu.blocks.get(step.after[0])
            if other is None or not 0 <= step.after[1] < len(other.steps):
                raise self._error(f"depid={step.after[0]}, deps={step.after[1]}", step.line, "a step of the gpu")

    def _error(self, problem: str, line: int = 0, valid: str = "") -> ExtensionError:
        place = f"{self._path}, line {line}" if line else str(self._path)
        return ExtensionError(f"{place}: {problem}" + (f" (valid: {valid})" if valid else ""))

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber

    def _doctype(self, name: str, *_: object) -> None:
        raise self._error(f"DOCTYPE {shown(name)} is refused", self._line)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        above = self._open[-1] if self._open else ""
        if _PARENTS.get(tag) != above:
            valid = ", ".join(name for name, parent in _PARENTS.items() if parent == above)
            raise self._error(f"<{tag[:40]}>", self._line, valid or "none")
        self._open.append(tag)
        {"algo": self._algo, "gpu": self._add_gpu, "tb": self._add_block, "step": self._add_step}[tag](attributes)

    def _end(self, tag: str) -> None:
        self._open.pop()

    def _number(self, attributes: dict[str, str], name: str, least: int, most: int, default: str = "") -> int:
        text = attributes.get(name, default)
        digits = text.removeprefix("-")
        if len(digits) > 12 or not (digits.isascii() and digits.isdigit()) or not least <= int(text) <= most:
            raise self._error(f"{name} is {shown(text)}", self._line, f"{least} to {most}")
        return int(text)

    def _choice(self, attributes: dict[str, str], name: str, valid: Sequence[str]) -> str:
        text = attributes.get(name, "")
        if text not in valid:
            raise self._error(f"{name} is {shown(text)}", self._line, ", ".join(valid))
        return text

    def _algo(self, attributes: dict[str, str]) -> None:
        # Older files say nranks.
        self._ranks = self._number(attributes, "ngpus" if "ngpus" in attributes else "nranks", 1, MAX_RANKS)
        self._algorithm = MscclAlgorithm(
            attributes.get("name", ""),
            COLLECTIVES[self._choice(attributes, "coll", tuple(COLLECTIVES))],
            self._number(attributes, "nchunksperloop", 1, MAX_CHUNKS),
            self._number(attributes, "outofplace", 0, 1, str(1 - self._number(attributes, "inplace", 0, 1, "0"))) == 0,
            [],
        )

    def _add_gpu(self, attributes: dict[str, str]) -> None:
        rank = self._number(attributes, "id", 0, self._ranks - 1)
        if rank in self._gpus:
            raise self._error(f"gpu {rank} occurs twice", self._line)
        sizes = [self._number(attributes, f"{name}_chunks", 0, MAX_CHUNKS, "0") for name in _BUFFERS]
        self._gpu = self._gpus[rank] = Gpu(sizes[0], sizes[1], sizes[2])

    def _add_block(self, attributes: dict[str, str]) -> None:
        assert self._gpu is not None, "a gpu around each tb"
        number = self._number(attributes, "id", 0, MAX_STEPS)
        if number in self._gpu.blocks:
            raise self._error(f"tb {number} occurs twice", self._line)
        send, receive = (self._number(attributes, name, -1, self._ranks - 1, "-1") for name in ("send", "recv"))
        channel = self._number(attributes, "chan", 0, MAX_CHUNKS, "0")
        self._block = self._gpu.blocks[number] = Block(number, send, receive, channel)

    def _add_step(self, attributes: dict[str, str]) -> None:
        assert self._block is not None, "a tb around each step"
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise self._error(f"more than {MAX_STEPS} steps", self._line)
        number = self._number(attributes, "s", 0, MAX_STEPS)
        if number != len(self._block.steps):
            raise self._error(f"step {number} of tb {self._block.number}", self._line, f"{len(self._block.steps)}")
        count = self._number(attributes, "cnt", 0, MAX_CHUNKS)
        source, destination = (
            Chunks(
                self._choice(attributes, f"{side}buf", _BUFFERS),
                self._number(attributes, f"{side}off", -1, MAX_CHUNKS),
                count,
            )
            for side in ("src", "dst")
        )
        block = self._number(attributes, "depid", -1, MAX_STEPS, "-1")
        after = (block, self._number(attributes, "deps", -1, MAX_STEPS, "-1")) if block >= 0 else None
        kind = self._choice(attributes, "type", TYPES)
        self._block.steps.append(Step(kind, source, destination, after, self._line))


def used_chunks(step: Step) -> tuple[Chunks, ...]:
    """Return the chunks of the GPU's own buffers that a step reads or writes."""
    match step.kind:
        case "nop":
            return ()
        case "s" | "rrs":
            return (step.source,)
        case "r" | "rcs":
            return (step.destination,)
        case _:
            return (step.source, step.destination)

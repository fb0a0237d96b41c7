"""A rank's schedule of an MSCCL algorithm. Messages land in slots of the scratch buffer, one each.

So no message overwrites what another step still reads, whatever the order in which they arrive; MSCCL has FIFOs there.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.traffic.msccl.ordering import OrderedSteps
from weft.traffic.msccl.reading import Block, Chunks, Gpu, MscclAlgorithm, Step
from weft.traffic.schedule_nodes import (
    DATA,
    SCRATCH,
    Channel,
    Copy,
    RankSchedule,
    Reduce,
    Span,
    WaitReceive,
    Write,
    run_immediate,
)
from weft.traffic.schedules.plan import channel_to
from weft.traffic.schedules.spec import CollectiveSpec


class MscclSchedule:
    """Makes the schedules of an algorithm's ranks; all steps name chunks of the same size."""

    def __init__(self, algorithm: MscclAlgorithm, ordered: OrderedSteps) -> None:
        self._algorithm = algorithm
        self._ordered = ordered

    def __call__(self, spec: CollectiveSpec, rank: int) -> RankSchedule:
        """Return a rank's schedule."""
        return _Rank(self._algorithm, self._ordered, spec, rank).made()


class _Rank:
    """Adds a rank's steps. `_chain` has for each block the nodes that its next step follows."""

    def __init__(self, algorithm: MscclAlgorithm, ordered: OrderedSteps, spec: CollectiveSpec, rank: int) -> None:
        self._algorithm, self._ordered, self._spec, self._rank = algorithm, ordered, spec, rank
        self._chunk_bytes = spec.size_bytes // algorithm.chunks
        self._gpu = algorithm.gpus[rank]
        size = {DATA: spec.size_bytes, SCRATCH: max(self._slot_start(self._gpu) + ordered.slot_chunks[rank], 1)}
        size[SCRATCH] *= max(self._chunk_bytes, 1)
        self._schedule = RankSchedule(rank, size)
        self._chain: dict[int, tuple[int, ...]] = {}
        self._done: dict[tuple[int, int], tuple[int, ...]] = {}
        self._writes: dict[tuple[str, int], list[int]] = {}
        """Writes by the chunks that they read; a chunk must not change before they are acknowledged."""

    def made(self) -> RankSchedule:
        """Return the schedule."""
        if not self._chunk_bytes:
            return self._schedule
        start: tuple[int, ...] = ()
        if not self._algorithm.is_in_place and self._gpu.input_chunks:
            # Weft's collectives work in place, so the input is kept where the output cannot overwrite it.
            first = self._gpu.input_chunks * self._rank if self._algorithm.collective == "allgather" else 0
            source = self._span(DATA, first, self._gpu.input_chunks)
            kept = self._span(SCRATCH, self._gpu.scratch_chunks, self._gpu.input_chunks)
            start = (self._schedule.add(Copy(kept, source)),)
        for number, place in self._ordered.of_gpu[self._rank]:
            block = self._gpu.blocks[number]
            step = block.steps[place]
            after = [*self._chain.get(number, start), *(self._done[step.after] if step.after else ())]
            chain = self._add(block, place, step, tuple(dict.fromkeys(after)))
            self._chain[number] = self._done[number, place] = chain
        return self._schedule

    def _slot_start(self, gpu: Gpu) -> int:
        return gpu.scratch_chunks + (0 if self._algorithm.is_in_place else gpu.input_chunks)

    def _span(self, buffer: str, first: int, count: int) -> Span:
        return Span(buffer, first * self._chunk_bytes, count * self._chunk_bytes)

    def _place(self, chunks: Chunks) -> tuple[str, int]:
        """Return the buffer of chunks and where they begin, in chunks."""
        collective, gpu = self._algorithm.collective, self._gpu
        if chunks.buffer == "s":
            return SCRATCH, chunks.offset
        if chunks.buffer == "i":
            if not self._algorithm.is_in_place:
                return SCRATCH, gpu.scratch_chunks + chunks.offset
            return DATA, chunks.offset + (gpu.input_chunks * self._rank if collective == "allgather" else 0)
        return DATA, chunks.offset + (gpu.output_chunks * self._rank if collective == "reducescatter" else 0)

    def _of(self, chunks: Chunks) -> Span:
        return self._span(*self._place(chunks), chunks.count)

    def _readers(self, chunks: Chunks) -> list[int]:
        """Return the writes that read chunks which are about to change."""
        buffer, first = self._place(chunks)
        keys = ((buffer, number) for number in range(first, first + chunks.count))
        return [node for key in keys for node in self._writes.pop(key, ())]

    def _add(self, block: Block, place: int, step: Step, after: tuple[int, ...]) -> tuple[int, ...]:
        """Add a step; return the nodes that the block's next one follows."""
        schedule, key = self._schedule, (self._rank, block.number, place)
        source, destination = step.source, step.destination
        if step.kind == "nop":
            return after
        if step.kind == "s":
            buffer, first = self._place(source)
            node = self._send(block, key, self._of(source), after)
            for number in range(first, first + source.count):
                self._writes.setdefault((buffer, number), []).append(node)
            return after
        if step.kind in ("cpy", "re"):
            before = [*after, *self._readers(destination)]
            made = Copy(self._of(destination), self._of(source))
            return (schedule.add(made if step.kind == "cpy" else self._reduce(made.destination, made.source), before),)
        number = self._ordered.received[key]
        slot = self._slot(self._rank, block.receive, number, step.destination.count)
        immediate = run_immediate(self._spec.run_tag, number)
        node = schedule.add(WaitReceive(self._channel(block, block.receive), immediate), after)
        if step.kind in ("rrc", "rrs", "rrcs"):
            node = schedule.add(self._reduce(slot, self._of(source)), (node,))
        if step.kind in ("rcs", "rrs", "rrcs"):
            self._send(block, key, slot, (node,))
        if step.kind != "rrs":
            node = schedule.add(Copy(self._of(destination), slot), (node, *self._readers(destination)))
        return (node,)

    def _reduce(self, target: Span, source: Span) -> Reduce:
        return Reduce(target, source, self._spec.dtype, self._spec.operation)

    def _send(self, block: Block, key: tuple[int, int, int], source: Span, after: Iterable[int]) -> int:
        number = self._ordered.sent[key]
        landing = self._slot(block.send, self._rank, number, source.length_bytes // self._chunk_bytes)
        immediate = run_immediate(self._spec.run_tag, number)
        return self._schedule.add(Write(self._channel(block, block.send), source, landing, immediate), after)

    def _slot(self, rank: int, sender: int, number: int, count: int) -> Span:
        """Return where a rank receives a message."""
        first = self._slot_start(self._algorithm.gpus[rank]) + self._ordered.slots[rank][sender, number]
        return self._span(SCRATCH, first, count)

    def _channel(self, block: Block, peer: int) -> Channel:
        plane = block.channel % len(self._spec.plane_rates_bps)
        return channel_to(self._spec, self._rank, plane, peer)

"""The operations of a pipeline stage's ranks, which differ only in peers and groups."""

from __future__ import annotations

from collections.abc import Mapping

from weft.jobs.compute_times import ComputeTimes
from weft.jobs.formulas.messages import boundary_bytes, embedding_bytes, unit_bytes
from weft.jobs.pipeline_schedules import Pass, Step
from weft.jobs.program_writer import GroupKind, Peer, ProgramWriter, StagePeer, Stream
from weft.jobs.training_plan import TrainingPlan
from weft.jobs.unit_passes import UnitPasses
from weft.traffic.jobs import CollectiveCall, Operations


def stage_operations(
    plan: TrainingPlan,
    stage: int,
    group_sizes: Mapping[GroupKind, int],
    calls: dict[CollectiveCall, int],
    member: int = 0,
) -> tuple[Operations, tuple[Peer, ...]]:
    """Return the operations of a step on the ranks of a stage, and the peer in each slot.

    Args:
        plan: plan of the step.
        stage: number of the stage, from 0.
        group_sizes: ranks of each kind of group that the stage's ranks are in, in order of group slots.
        calls: see `ProgramWriter`.
        member: number among the ranks that share the experts; it matters only if routing is not balanced.
    """
    writer = ProgramWriter(group_sizes, calls, plan.algorithms)
    program = _StageProgram(plan, stage, writer, member)
    for step in plan.stage_steps[stage]:
        program.add(step)
    program.add_optimizer()
    return writer.finish(), writer.peers


class _StageProgram:
    def __init__(self, plan: TrainingPlan, stage: int, writer: ProgramWriter, member: int) -> None:
        self._plan, self._stage, self._writer = plan, stage, writer
        self._units = UnitPasses(plan, writer, member)
        self._splits = any(step.what is Pass.WEIGHT for step in plan.stage_steps[stage])
        self._last_reduction: int | None = None
        self._last_gather: int | None = None
        self._visited: tuple[int, ...] = ()

    def add(self, step: Step) -> None:
        """Add a pass."""
        units = self._plan.units_of(self._stage, step.part)
        name = f"{step.what.value} {step.micro_batch}"
        if step.what is Pass.FORWARD:
            self._receive(step, -1)
            for unit in units:
                self._gather_weights(unit)
                self._units.forward(unit, name)
            self._send(step, 1)
            return
        if step.what is Pass.BACKWARD:
            self._receive(step, 1)
            for unit in reversed(units):
                self._gather_weights(unit)
                self._units.backward(unit, name, with_weights=not self._splits)
                if not self._splits:
                    self._reduce_gradients(unit, step)
            self._send(step, -1)
            return
        for unit in reversed(units):
            self._units.weights(unit, name)
            self._reduce_gradients(unit, step)

    def add_optimizer(self) -> None:
        """Add the optimizer, which waits for all gradients to be reduced, and the gathering of updated weights."""
        writer, parallel = self._writer, self._plan.parallel
        if parallel.pipeline > 1 and self._plan.model.is_gpt:
            # The first and the last stage sum the gradients of their copies of the embedding. A shard of them exists
            # only after the reduction among replicas.
            if parallel.zero >= 2:
                writer.wait_for([self._last_reduction])
            writer.collective(GroupKind.EMBEDDING, "allreduce", embedding_bytes(self._plan), Stream.DATA)
        writer.wait_for([self._last_reduction])
        writer.compute(ComputeTimes(self._plan).optimizer(self._stage), "optimizer", "optimizer")
        if parallel.zero not in (1, 2):
            return
        before: tuple[int | None, ...] = writer.cursor
        for part in range(parallel.virtual_stages):
            for unit in self._plan.units_of(self._stage, part):
                for kind, size_bytes in self._of_unit(unit, "weights"):
                    gathered = writer.beside(kind, "allgather", size_bytes, Stream.DATA, after=before)
                    before = before if gathered is None else (gathered,)

    def _reduce_gradients(self, unit: int, step: Step) -> None:
        """Reduce a unit's gradients after the last micro-batch, or after each if gradients are sharded."""
        zero = self._plan.parallel.zero
        if zero < 2 and step.micro_batch < self._plan.micro_batches - 1:
            return
        collective = "reducescatter" if zero else "allreduce"
        for kind, size_bytes in self._of_unit(unit, "gradients"):
            after = (*self._writer.cursor, self._last_reduction)
            reduced = self._writer.beside(kind, collective, size_bytes, Stream.DATA, after=after)
            if reduced is not None:
                self._last_reduction = reduced

    def _gather_weights(self, unit: int) -> None:
        """Gather a unit's weights if they are sharded; this begins with the computation of the previous unit."""
        if self._plan.parallel.zero < 3:
            return
        begun = self._writer.cursor
        for kind, size_bytes in self._of_unit(unit, "weights"):
            gathered = self._writer.beside(
                kind,
                "allgather",
                size_bytes,
                Stream.WEIGHTS,
                after=(*self._visited, self._last_gather),
            )
            if gathered is not None:
                self._last_gather = gathered
        self._visited = begun
        self._writer.wait_for([self._last_gather])

    def _of_unit(self, unit: int, what: str) -> list[tuple[GroupKind, int]]:
        """Return the groups that share a unit's parameters, each with the bytes of its weights or gradients."""
        kinds = (GroupKind.DATA, GroupKind.EXPERT_DATA)
        return list(zip(kinds, unit_bytes(self._plan, unit, what), strict=True))

    def _send(self, step: Step, direction: int) -> None:
        if (peer := self._peer(step, direction)) is not None:
            size_bytes = boundary_bytes(self._plan)
            self._writer.send(peer, size_bytes, self._tag(step, direction), "pipeline")

    def _receive(self, step: Step, direction: int) -> None:
        if (peer := self._peer(step, direction)) is not None:
            size_bytes = boundary_bytes(self._plan)
            self._writer.receive(peer, size_bytes, self._tag(step, direction), "pipeline")

    def _peer(self, step: Step, direction: int) -> Peer | None:
        """Return the stage of the part before (-1) or after (1) a step's; None at an end and with a single stage."""
        stages = self._plan.parallel.pipeline
        place = step.part * stages + self._stage + direction
        if not 0 <= place < stages * self._plan.parallel.virtual_stages or stages == 1:
            return None
        return StagePeer(place % stages)

    def _tag(self, step: Step, direction: int) -> int:
        """Return a number unique to the boundary between two parts, the direction and the micro-batch."""
        boundary = step.part * self._plan.parallel.pipeline + self._stage + (0 if direction > 0 else -1)
        forward = 1 if step.what is Pass.FORWARD else 0
        return (boundary * 2 + forward) * self._plan.micro_batches + step.micro_batch

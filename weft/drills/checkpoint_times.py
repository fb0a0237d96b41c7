"""Times of a job's checkpoints, measured with packets: how long saving and restoring take, and what saving slows down.

A checkpoint of a large model has more packets than a run can send. Two shares of it are written (or read), one twice
the other, and the line through both times is extended to the whole: what a command's latency adds at both ends counts
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from weft.drills.running import measured_tree, virtual_scenario
from weft.errors import BadInputError, WeftError
from weft.goodput import MeasuredCheckpoint
from weft.jobs.storage.loads import MAX_COMMANDS
from weft.quantities.units import PS_PER_S
from weft.results.storage import STORAGE
from weft.run.traffic_kinds.storage import Checkpoint, StorageTraffic
from weft.scenario import Change
from weft.scenario.cluster import ClusterSection
from weft.trials import Procedure, Trial, TrialProgress, TrialRun, TrialRunner

_ITEM, _LOAD = StorageTraffic.kind, "checkpoint"
SHARE_BYTES = 2 * 2**30
"""Bytes of the larger share: a run of some seconds."""
_QUEUES = 4
"""How often the larger share fills each client's queue at least, so that most of its time all queues are full."""
_MOST_COMMANDS = MAX_COMMANDS // 2
Operation = Literal["save", "restore"]


@dataclass(frozen=True)
class Line:
    """Time of a share of a checkpoint: `fixed_s` and `whole_s` more for the whole."""

    fixed_s: float
    whole_s: float

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> Line:
        """Return the line through one or two points (share, seconds); through the origin if there is one."""
        (share, seconds), *others = points
        if not others:
            return cls(0.0, seconds / share)
        larger, longer = others[0]
        slope = (longer - seconds) / (larger - share)
        return cls(seconds - slope * share, slope)

    def at(self, share: float) -> float:
        """Return the time of a share, in seconds."""
        return self.fixed_s + self.whole_s * share

    def share_of(self, seconds: float) -> float:
        """Return the share that takes so long."""
        return (seconds - self.fixed_s) / self.whole_s


def settled_times(settings: ClusterSection, found: MeasuredCheckpoint) -> ClusterSection:
    """Return the section with the times that were measured."""
    checkpoint, restart = settings.checkpoint, settings.restart
    if checkpoint.measured == "waiting":
        assert found.saving_s is not None
        checkpoint = checkpoint.model_copy(update={"cost": found.saving_s, "measured": None})
    elif checkpoint.measured == "background":
        assert found.saving_s is not None
        waited = checkpoint.cost + found.slowed_s
        checkpoint = checkpoint.model_copy(update={"cost": waited, "saving": found.saving_s, "measured": None})
    if restart.measured:
        assert found.restoring_s is not None
        restart = restart.model_copy(update={"start": restart.start + found.restoring_s, "measured": False})
    return settings.model_copy(update={"checkpoint": checkpoint, "restart": restart})


def measured_times(
    settings: ClusterSection,
    scenario: Path,
    changes: Sequence[Change],
    directory: Path,
    workers: int | None = None,
    progress: TrialProgress | None = None,
) -> tuple[ClusterSection, MeasuredCheckpoint | None]:
    """Return a section with the times of checkpoints that packets show, and what they showed; None if it asks for none.

    Args:
        settings: the section.
        scenario: its file; an item `storage` of its traffic has a `checkpoint`.
        changes: of the scenario.
        directory: of the runs; those that have ended there before are not repeated.
        workers: runs at a time.
        progress: is told of runs.

    Raises:
        BadInputError: there is no such item, or more than one item of other traffic to be written beside.
        WeftError: a run could not be made, or did not end well.
    """
    if settings.checkpoint.measured is None and not settings.restart.measured:
        return settings, None
    plan = _Plan(scenario, changes)
    procedures: dict[str, Procedure[_Measured]] = {}
    if settings.checkpoint.measured is not None:
        procedures["checkpoint"] = plan.saving(beside=settings.checkpoint.measured == "background")
    if settings.restart.measured:
        procedures["restart"] = plan.restoring()
    found: dict[str, _Measured] = {}
    for name, each in TrialRunner(directory, workers, progress).run(procedures).items():
        if isinstance(each, WeftError):
            raise each
        found[name] = each
    saved, restored = found.get("checkpoint"), found.get("restart")
    measured = MeasuredCheckpoint(
        plan.whole_bytes("save"),
        saved.seconds if saved else None,
        saved.slowed_s if saved else 0.0,
        restored.seconds if restored else None,
        min(each.share for each in found.values()),
    )
    return settled_times(settings, measured), measured


def without_checkpoints(traffic: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a scenario's items of traffic other than checkpoints."""
    return [item for item in traffic if not _is_checkpoint(item)]


def _is_checkpoint(item: Mapping[str, Any]) -> bool:
    return _ITEM in item and item.get(_LOAD) is not None


@dataclass(frozen=True)
class _Measured:
    """Time of a whole checkpoint, how much longer other traffic took for it, and the larger share that was run."""

    seconds: float
    share: float
    slowed_s: float = 0.0


class _Plan:
    """Trials of the checkpoint of a scenario's traffic."""

    def __init__(self, scenario: Path, changes: Sequence[Change]) -> None:
        tree, parsed = virtual_scenario(scenario, changes)
        self._place = f"{scenario}: traffic"
        items = list(tree.get("traffic") or [])
        numbers = [number for number, item in enumerate(items) if _is_checkpoint(item)]
        if len(numbers) != 1:
            raise BadInputError(
                f"{len(numbers)} items `{_ITEM}` have a `{_LOAD}`",
                place=self._place,
                valid="one item, which is measured",
            )
        (number,) = numbers
        item = parsed.traffic[number]
        assert isinstance(item, StorageTraffic)
        assert item.checkpoint is not None
        self._checkpoint, self._block_bytes = item.checkpoint, item.block
        self._clients = item.checkpoint.plan.parallel.rank_count
        self._queue_depth = item.queue_depth
        self._item = items[number]
        self._others = without_checkpoints(items)
        self._tree = measured_tree(tree)

    def whole_bytes(self, operation: Operation) -> int:
        """Return the bytes of a whole checkpoint."""
        return self._whole(operation).command_count(1)

    def _whole(self, operation: Operation) -> Checkpoint:
        return self._checkpoint.model_copy(update={"operation": operation, "share": 1.0})

    def _shares(self, operation: Operation) -> list[float]:
        """Return the shares to run: all of a small checkpoint, else one, and twice of it."""
        filling = 2 * _QUEUES * self._queue_depth * self._clients
        commands = min(_MOST_COMMANDS, max(SHARE_BYTES // self._block_bytes, filling))
        whole = self._whole(operation).command_count(self._block_bytes)
        if whole <= commands:
            return [1.0]
        return [commands / whole / 2, commands / whole]

    def _trial(self, label: str, traffic: Sequence[Mapping[str, Any]]) -> Trial:
        return Trial(label, {**self._tree, "traffic": list(traffic)})

    def _checkpoint_item(self, operation: Operation, share: float) -> dict[str, Any]:
        return {**self._item, _LOAD: {**self._item[_LOAD], "operation": operation, "share": share}}

    def _line(self, operation: Operation) -> Procedure[tuple[Line, float]]:
        """Measure the time of a checkpoint by share; return also the largest share that was run."""
        shares = self._shares(operation)
        runs = yield [
            self._trial(f"{operation} {share:.3g} of a checkpoint", [self._checkpoint_item(operation, share)])
            for share in shares
        ]
        times = [_well(run).results_of(STORAGE.key)[0].time_ps / PS_PER_S for run in runs]
        return Line.through(list(zip(shares, times, strict=True))), shares[-1]

    def restoring(self) -> Procedure[_Measured]:
        """Return the procedure that measures how long a checkpoint is read."""
        line, share = yield from self._line("restore")
        return _Measured(line.at(1), share)

    def saving(self, *, beside: bool) -> Procedure[_Measured]:
        """Return the procedure that measures how long a checkpoint is written, alone or `beside` the other traffic."""
        line, share = yield from self._line("save")
        if not beside:
            return _Measured(line.at(1), share)
        if len(self._others) != 1 or "together" in self._others[0]:
            raise BadInputError(
                f"{len(self._others)} items beside the checkpoint",
                place=self._place,
                valid="one item that runs while it is written, not `together`",
            )
        (alone,) = yield [self._trial("traffic without a checkpoint", self._others)]
        traffic_s = _traffic_s(_well(alone), "")
        # As long as the traffic, if possible, so that each meets the other all the time.
        part = min(max(line.share_of(traffic_s), share / 2), share)
        items = [*self._others, self._checkpoint_item("save", part)]
        (both,) = yield [self._trial("traffic and a checkpoint", [{"together": items}])]
        written = _well(both).results_of(STORAGE.key)[0]
        written_s, disturbed_s = written.time_ps / PS_PER_S, _traffic_s(both, written.name)
        both_s = min(written_s, disturbed_s)
        whole_s = line.at(1) / (1 - max(0.0, written_s - line.at(part)) / both_s)
        slowed_s = max(0.0, disturbed_s - traffic_s) / both_s * whole_s
        return _Measured(whole_s, share, slowed_s)


def _well(run: TrialRun) -> TrialRun:
    """Return a run that has ended well; BadInputError if it has not."""
    if run.failure:
        raise BadInputError(f"{run.trial.label} does not end well: {run.failure}", place="traffic")
    return run


def _traffic_s(run: TrialRun, without: str) -> float:
    """Return how long a run's traffic took, in seconds, without the phase of a name."""
    phases = [phase for phase in run.results.phases if phase.name != without]
    return (max(phase.end_ps for phase in phases) - min(phase.start_ps for phase in phases)) / PS_PER_S

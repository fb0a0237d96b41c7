"""A cluster as its life sees it: how many parts there are, how often they fail, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.errors import BadInputError
from weft.goodput.formulas import best_interval_s
from weft.scenario.cluster import (
    INTERRUPTING,
    CheckpointSection,
    ClusterSection,
    FailureSection,
    RestartSection,
)
from weft.topologies import FabricSpec

_MOST_FAILURES = 200_000
"""In a history, which then takes seconds."""
_ONLY_GOODPUT = "measured: only weft goodput runs the traffic"


@dataclass(frozen=True)
class FailureKind:
    """Failures of one kind: how many parts have them, and how often all of them together do, per second."""

    settings: FailureSection
    parts: int

    @property
    def title(self) -> str:
        """Its name in results."""
        return self.settings.title

    @property
    def rate(self) -> float:
        """Failures per second."""
        return self.parts / self.settings.mtbf

    @property
    def ends_job(self) -> bool:
        """Whether the job starts again after it."""
        return self.settings.effect in INTERRUPTING


@dataclass(frozen=True)
class Cluster:
    """All that a job's life depends on. Times in seconds.

    Attributes:
        interval_s: work between checkpoints.
        interval_is_chosen: whether nobody has given it: it is the best by `formulas.efficiency`.
    """

    accelerators: int
    hosts: int
    spares: int
    duration_s: float
    kinds: Sequence[FailureKind]
    checkpoint: CheckpointSection
    restart: RestartSection
    interval_s: float
    interval_is_chosen: bool

    @property
    def restart_s(self) -> float:
        """From a failure until the job goes on, if a host is there."""
        return self.restart.detection + self.restart.start

    @property
    def interruption_rate(self) -> float:
        """Failures per second that end the job."""
        return sum(kind.rate for kind in self.kinds if kind.ends_job)

    @property
    def best_interval_s(self) -> float:
        """The interval that loses least time, by `formulas.efficiency`."""
        return best_interval_s(self.checkpoint.cost, self.interruption_rate)


def cluster_of(settings: ClusterSection, fabric: FabricSpec) -> Cluster:
    """Return the cluster that a scenario describes.

    Raises:
        BadInputError: an effect that is not measured yet; parts that the fabric does not tell the number of; too many
            failures; no best interval; a checkpoint that is saved for longer than it takes until the next one.
    """
    of_fabric = fabric.rank_count * settings.accelerators_per_endpoint(fabric.ranks_per_host)
    accelerators = settings.accelerators or of_fabric
    per_host = settings.accelerators_per_host or fabric.ranks_per_host
    hosts = -(-accelerators // per_host)
    parts = {"accelerator": accelerators, "host": hosts, "cluster": 1}
    if accelerators == of_fabric:
        parts |= _fabric_parts(fabric)
    kinds = []
    for number, failure in enumerate(settings.failures):
        if failure.effect == "measured":
            raise BadInputError(
                _ONLY_GOODPUT,
                place=f"cluster.failures[{number}].effect",
                valid="the effect that it finds; for weft cost its --out, as --goodput",
            )
        if failure.count is None and failure.part not in parts:
            raise BadInputError(
                "the fabric has no storage network"
                if failure.part == "storage-network" and accelerators == of_fabric
                else f"the fabric has {of_fabric:,} accelerators, the cluster {accelerators:,}: how many of part "
                f"{failure.part} there are is not known",
                place=f"cluster.failures[{number}]",
                valid="`count`",
            )
        kinds.append(FailureKind(failure, failure.count or parts[failure.part]))
    in_all = sum(kind.rate for kind in kinds) * settings.duration
    if in_all > _MOST_FAILURES:
        raise BadInputError(
            f"{in_all:,.0f} failures in {settings.duration:g} s",
            place="cluster.failures",
            valid=f"up to {_MOST_FAILURES:,}: a longer mtbf, or a shorter duration",
        )
    for key, section in (("checkpoint", settings.checkpoint), ("restart", settings.restart)):
        if section.measured:
            raise BadInputError(
                _ONLY_GOODPUT,
                place=f"cluster.{key}.measured",
                valid="the times that it finds; for weft cost its --out, as --goodput",
            )
    rate = sum(kind.rate for kind in kinds if kind.ends_job)
    checkpoint = settings.checkpoint
    interval_s = checkpoint.interval or _best_interval(settings, rate)
    if checkpoint.saving > interval_s + checkpoint.cost:
        raise BadInputError(
            f"a checkpoint is saved for {checkpoint.saving:g} s, and the next one begins {interval_s:g} s later",
            place="cluster.checkpoint.saving",
        )
    return Cluster(
        accelerators,
        hosts,
        settings.spares,
        settings.duration,
        kinds,
        checkpoint,
        settings.restart,
        interval_s,
        checkpoint.interval is None,
    )


def _fabric_parts(fabric: FabricSpec) -> dict[str, int]:
    switches = {switch.name for switch in fabric.switches if switch.plane != fabric.storage_plane}
    has_storage_network = fabric.storage_plane is not None
    return {
        "nic": len(fabric.hosts) * fabric.training_nics,
        "link": sum(link.b.node in switches for link in fabric.links),
        "switch": len(switches),
        "plane": len(fabric.training_planes),
        **({"storage-network": 1} if has_storage_network else {}),
    }


def _best_interval(settings: ClusterSection, rate: float) -> float:
    """Return the best interval; without failures that end the job, and with free checkpoints, there is none."""
    if rate == 0:
        return settings.duration
    if settings.checkpoint.cost == 0:
        raise BadInputError(
            "checkpoints that cost nothing have no best interval",
            place="cluster.checkpoint.interval",
            valid="an interval, such as 30min",
        )
    return best_interval_s(settings.checkpoint.cost, rate)

"""Section of a scenario: a cluster's life over days, its failures, checkpoints and restarts (`weft goodput`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from weft.errors import BadInputError
from weft.quantities.definitions import DURATION, Duration, PositiveDuration, number, whole
from weft.quantities.example import Example
from weft.quantities.units import S_PER_DAY
from weft.scenario.values import Section, SectionKeyError, Text

if TYPE_CHECKING:
    from weft.scenario.model import Scenario

Part = Literal["accelerator", "host", "nic", "link", "switch", "plane", "storage-network", "cluster"]
Effect = Literal["replace", "restart", "stall", "slow", "corrupt", "no-storage", "measured"]
MEASURED_PARTS: tuple[Part, ...] = ("link", "switch", "plane", "nic")
"""Parts whose failures packets can show."""
INTERRUPTING: tuple[Effect, ...] = ("replace", "restart", "corrupt")
"""Effects that end the job, which starts again from a checkpoint."""
_MINUTE_S, _DAY_S = 60.0, float(S_PER_DAY)
_MOST_PARTS = 10**8
# Keys that say something about some effects only, and whether these need them.
_KEYS_OF: dict[str, tuple[tuple[Effect, ...], bool]] = {
    "repair": (("replace", "slow", "corrupt", "no-storage", "measured"), False),
    "stall": (("stall",), True),
    "speed": (("slow",), True),
    "noticed_after": (("corrupt",), True),
}


class FailureSection(Section):
    """Failures of one kind. They come at random, each part's at its own rate whatever the others do."""

    name: Annotated[
        str | None, Text("a name of up to 41 of a-z, 0-9 and -", r"\A[a-z0-9][a-z0-9-]{0,40}\Z", "gpu-memory")
    ] = None
    """Name in results; by default the part's."""
    part: Part = "host"
    """Part that fails. NICs, links, switches and planes are those of all traffic; `storage-network`: that of storage
    alone. `cluster`: the whole, such as software that all hosts run."""
    count: Annotated[Annotated[int, whole(1, _MOST_PARTS)] | None, Example("16384")] = None
    """How many parts there are; by default as many as the fabric has."""
    mtbf: Annotated[PositiveDuration, Example("50000h")]
    """Mean time between failures of one part."""
    effect: Annotated[Effect, Example("restart")] = "replace"
    """`replace`: the job ends and starts again from its last checkpoint, once a spare host has taken the host's place.
    `restart`: it starts again on the same hosts. `stall`: all hosts wait for `stall`, and go on. `slow`: the job goes
    on at `speed` until the repair. `corrupt`: results are wrong, which is noticed after `noticed_after`; the job then
    starts again from a checkpoint of before, without the host. `no-storage`: nothing is written to storage or read from
    it until the repair: the job goes on, its checkpoints are late, and it cannot start again. `measured`: what the
    scenario's traffic shows, run with packets with the part and without: one of `replace`, `restart`, `slow` and
    `stall`.
    """
    repair: Annotated[Duration | None, Example("4h")] = None
    """Until the host is a spare again, the job is as fast as before, or storage is there; by default a day."""
    stall: Annotated[Duration | None, Example("15s", (".effect=stall",))] = None
    """How long all hosts wait."""
    speed: Annotated[
        Annotated[float, number(0, 1, above=True, example="0.5")] | None, Example("0.5", (".effect=slow",))
    ] = None
    """Speed of the job, as a share of its speed before."""
    noticed_after: Annotated[Duration | None, Example("6h", (".effect=corrupt",))] = None
    """From when results are wrong until somebody knows."""

    @model_validator(mode="after")
    def _check_storage_network(self) -> FailureSection:
        if self.part == "storage-network" and self.effect in ("replace", "corrupt"):
            raise SectionKeyError(
                "effect",
                f"{self.effect}: no host can take the place of part {self.part}",
                valid="no-storage, or another",
            )
        return self

    @model_validator(mode="after")
    def _check_measured_part(self) -> FailureSection:
        if self.effect == "measured" and self.part not in MEASURED_PARTS:
            raise SectionKeyError("effect", f"measured: packets do not show failures of part {self.part}")
        return self

    @model_validator(mode="after")
    def _check_keys_of_effects(self) -> FailureSection:
        for key, (effects, is_needed) in _KEYS_OF.items():
            given = getattr(self, key) is not None
            if given and self.effect not in effects:
                raise SectionKeyError(key, f"goes with effect {' or '.join(effects)}, not {self.effect}")
            if is_needed and not given and self.effect in effects:
                raise SectionKeyError(key, f"is missing for effect {self.effect}")
        return self

    @property
    def title(self) -> str:
        """Its name in results."""
        return self.name or self.part

    @property
    def repair_s(self) -> float:
        """Until the host, or the speed, is back."""
        return _DAY_S if self.repair is None else self.repair


class CheckpointSection(Section):
    """How a job keeps what it has done."""

    interval: Annotated[PositiveDuration | None, Example("30min")] = None
    """Work between two checkpoints; by default what loses least time, by the rates of failures and by `cost`."""
    cost: Annotated[float, DURATION.between(0, 7 * _DAY_S, example="10s")] = 30.0
    """How long all hosts wait for one. 0: none."""
    saving: Annotated[float, DURATION.between(0, 7 * _DAY_S, example="2min")] = 0.0
    """From then until it counts, while hosts go on: it is written to storage in the background."""
    measured: Annotated[Literal["waiting", "background"] | None, Example("waiting")] = None
    """Measure with packets how long the `checkpoint` of the traffic's item `storage` takes. `waiting`: hosts wait until
    it is written; the time replaces `cost`. `background`: hosts go on after `cost`, and it is written beside the other
    traffic; the time replaces `saving`, and what this traffic takes longer is added to `cost`.
    """

    @model_validator(mode="after")
    def _check_measured_times(self) -> CheckpointSection:
        for key in ("saving",) if self.measured == "background" else ("cost", "saving") if self.measured else ():
            if key in self.model_fields_set:
                raise SectionKeyError(key, f"is measured: leave it out, or `measured: {self.measured}`")
        return self


class RestartSection(Section):
    """How a job that has ended starts again."""

    detection: Annotated[float, DURATION.between(0, 7 * _DAY_S, example="90s")] = 2 * _MINUTE_S
    """From a failure until it is known, and the job's other processes have ended."""
    start: Annotated[float, DURATION.between(0, 7 * _DAY_S, example="5min")] = 8 * _MINUTE_S
    """From then until it goes on: hosts, processes, communicators, and the checkpoint read. Also at the beginning."""
    measured: bool = False
    """Add the time to `start` that packets show for reading the checkpoint of the traffic's item `storage`."""


class ClusterSection(Section):
    """Life of a cluster that trains, for `weft goodput` and `weft cost` (docs/goodput.md).

    `weft run` does not use it.
    """

    accelerators: Annotated[Annotated[int, whole(1, _MOST_PARTS)] | None, Example("16384")] = None
    """Accelerators of the job; by default all of the fabric."""
    accelerators_per_host: Annotated[Annotated[int, whole(1, 1024)] | None, Example("8")] = None
    """By default as many as a host has ranks, each of which is an accelerator. `weft cost` uses it, too."""
    spares: Annotated[int, whole(0, _MOST_PARTS, example="32")] = 0
    """Hosts that wait to take another's place. Without one, the job waits until a host has been repaired."""
    duration: Annotated[float, DURATION.between(3600, 3650 * _DAY_S, example="54d")] = 30 * _DAY_S
    """How long the job is watched."""
    failures: Annotated[list[FailureSection], Example("[{mtbf: 50000h}]")] = Field(default=[])
    checkpoint: CheckpointSection = CheckpointSection()
    restart: RestartSection = RestartSection()

    @property
    def is_to_be_measured(self) -> bool:
        """Whether packets are to show an effect or a time."""
        effects = any(each.effect == "measured" for each in self.failures)
        return effects or self.checkpoint.measured is not None or self.restart.measured

    def accelerators_per_endpoint(self, ranks_per_host: int) -> int:
        """Return the accelerators behind each endpoint of a fabric whose hosts have so many ranks.

        Raises:
            BadInputError: `accelerators_per_host` is no multiple of the ranks.
        """
        per_host = self.accelerators_per_host or ranks_per_host
        if per_host % ranks_per_host:
            raise BadInputError(
                f"{per_host}, of hosts of {ranks_per_host} ranks",
                place="cluster.accelerators_per_host",
                valid="a multiple of them",
            )
        return per_host // ranks_per_host

    @model_validator(mode="after")
    def _check_names(self) -> ClusterSection:
        titles = [each.title for each in self.failures]
        for number_, title in enumerate(titles):
            if title in titles[:number_]:
                raise SectionKeyError("failures", f"two kinds are called {title}: give one a `name`")
        return self


def cluster_section(scenario: Scenario) -> ClusterSection:
    """Return a scenario's section, with its defaults where the file lacks it."""
    section = scenario.cluster
    return section if isinstance(section, ClusterSection) else ClusterSection()

"""Jobs on a fabric: the placement of their ranks, durations, and the times of each operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from weft.errors import BadInputError
from weft.quantities.traffic_classes import DATA_CLASS
from weft.results.clearances import ClearToSendResult, clearances_of
from weft.results.verification import Verdict
from weft.run.task import Ended
from weft.topologies import FabricSpec
from weft.traffic.jobs import Job
from weft.traffic.jobs.placing import PlacedRanks, RankPlaces
from weft.traffic.jobs.times import RankTimes

CollectiveData = Literal["lengths", "random"]
COLLECTIVE_DATA: tuple[CollectiveData, ...] = get_args(CollectiveData)


@dataclass(frozen=True)
class PlacedJob:
    """A job to run: the fabric's rank of each of its ranks, and how long after the common start it begins.

    By default they are the first ranks, host by host. `data` is the collectives' data: lengths, or elements drawn
    from the fabric's seed, the results of which are verified against NumPy. Messages carry lengths.
    """

    job: Job
    ranks: tuple[int, ...] | None = None
    start_ps: int = 0
    data: CollectiveData = "lengths"


@dataclass(frozen=True)
class JobRun:
    """A finished job.

    Attributes:
        job: the job.
        ranks: the fabric's rank of each of its ranks.
        places: properties of the fabric that the job depended on.
        started_ps: its start, in emulated time.
        duration_ps: time from the start to the end of its last operation.
        times: times of each rank's operations, since `started_ps`.
        retransmissions: packets that hosts sent again meanwhile, also for other tasks.
        verdict: verdict on the results of all collectives, if they had data.
        clear_to_send: messages that receivers cleared meanwhile, also for other tasks; None if senders did not wait.
    """

    job: Job
    ranks: tuple[int, ...]
    places: RankPlaces
    started_ps: int
    duration_ps: int
    times: tuple[RankTimes, ...]
    retransmissions: int
    verdict: Verdict | None = None
    clear_to_send: ClearToSendResult | None = None

    def busy_ps(self, rank: int) -> Counter[str]:
        """Return the total time of a rank's operations by category; overlapping operations count separately."""
        operations, times = self.job.parts[rank].operations, self.times[rank]
        took_ps = times.finished_ps - times.started_ps
        sums = Counter[str]()
        for number, name in enumerate(operations.categories):
            sums[name] += int(took_ps[operations.category == number].sum())
        return sums


def rank_places(
    topology: FabricSpec, plane_rates_bps: tuple[int, ...], traffic_classes: tuple[int, ...] = (DATA_CLASS,)
) -> RankPlaces:
    """Return the ranks' hosts and the other properties of a fabric that a job depends on."""
    return RankPlaces(
        topology.host_numbers(), plane_rates_bps, traffic_classes, topology.is_scale_up, topology.host_reductions
    )


def intact_places(topology: FabricSpec) -> RankPlaces:
    """Return the places of a fabric with all planes in use."""
    return rank_places(topology, topology.nic_rates_bps(topology.training_planes))


def first_ranks(count: int, places: RankPlaces) -> tuple[int, ...]:
    """Return the first `count` of the fabric's ranks, host by host."""
    return tuple(sorted(range(len(places.hosts)), key=lambda rank: (places.hosts[rank], rank))[:count])


def placed_ranks(job: Job, ranks: Sequence[int] | None, places: RankPlaces) -> PlacedRanks:
    """Return a job's ranks placed on the ranks given, or on the first ones, host by host.

    Raises BadInputError for too many ranks, JobError for other invalid places.
    """
    if ranks is None:
        count, available = len(job.parts), len(places.hosts)
        if count > available:
            raise BadInputError(f"a job of {count} ranks on a fabric of {available}", valid=f"up to {available}")
        ranks = first_ranks(count, places)
    return PlacedRanks(job, ranks, places)


def job_run(placed: PlacedRanks, ended: Ended) -> JobRun:
    """Return the outcome of a finished job."""
    start_ps = min(ended.outcome.started_ps)
    duration_ps = max(ended.outcome.finished_ps) - start_ps
    of_calls = (each.clear_to_send for each in placed.job.calls)
    settings = placed.job.clear_to_send or next(filter(None, of_calls), None)
    return JobRun(
        job=placed.job,
        ranks=placed.ranks,
        places=placed.places,
        started_ps=start_ps,
        duration_ps=duration_ps,
        times=tuple(each.after(start_ps) for each in ended.times),
        retransmissions=ended.counted.retransmissions,
        verdict=ended.verdict,
        clear_to_send=clearances_of(settings, len(placed.ranks), [duration_ps], [ended.counted]),
    )

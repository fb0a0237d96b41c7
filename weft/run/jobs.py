"""Jobs on a fabric: where their ranks are, what they took, and when each of their operations was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from weft.errors import BadInputError
from weft.quantities.traffic_classes import DATA_CLASS
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
    """A job to run: on which ranks of the fabric its own are, in order, and how long after the common start it begins.

    Without ranks they are the first ones, host by host. `data` is what collectives work on: lengths, or elements drawn
    from the fabric's seed, the results of which are verified against NumPy. Messages carry lengths.
    """

    job: Job
    ranks: tuple[int, ...] | None = None
    start_ps: int = 0
    data: CollectiveData = "lengths"


@dataclass(frozen=True)
class JobRun:
    """A job that has run.

    Attributes:
        job: what was run.
        ranks: the fabric's rank of each of its ranks.
        places: what of the fabric it depended on.
        started_ps: its start, in emulated time.
        duration_ps: from there to the end of its last operation.
        times: of each rank's operations, since `started_ps`.
        retransmissions: packets sent again by the hosts meanwhile, whatever they were sent for.
        verdict: on the results of all collectives, if they had data.
    """

    job: Job
    ranks: tuple[int, ...]
    places: RankPlaces
    started_ps: int
    duration_ps: int
    times: tuple[RankTimes, ...]
    retransmissions: int
    verdict: Verdict | None = None

    def busy_ps(self, rank: int) -> Counter[str]:
        """Return how long operations of each category took on a rank, added up; those that overlap count twice."""
        operations, times = self.job.parts[rank].operations, self.times[rank]
        took_ps = times.finished_ps - times.started_ps
        sums = Counter[str]()
        for number, name in enumerate(operations.categories):
            sums[name] += int(took_ps[operations.category == number].sum())
        return sums


def rank_places(
    topology: FabricSpec, plane_rates_bps: tuple[int, ...], traffic_classes: tuple[int, ...] = (DATA_CLASS,)
) -> RankPlaces:
    """Return which ranks of a fabric share hosts, beside what else a job depends on."""
    hosts = list(range(topology.rank_count))
    if topology.scale_up is not None:
        for number, ranks in enumerate(topology.scale_up.hosts(topology.rank_count)):
            for rank in ranks:
                hosts[rank] = number
    return RankPlaces(tuple(hosts), plane_rates_bps, traffic_classes)


def intact_places(topology: FabricSpec) -> RankPlaces:
    """Return the places of a fabric whose planes are all in use."""
    return rank_places(topology, tuple(nic.link.rate_bps for nic in topology.hosts[0].nics))


def first_ranks(count: int, places: RankPlaces) -> tuple[int, ...]:
    """Return so many of the fabric's ranks, host by host."""
    return tuple(sorted(range(len(places.hosts)), key=lambda rank: (places.hosts[rank], rank))[:count])


def placed_ranks(job: Job, ranks: Sequence[int] | None, places: RankPlaces) -> PlacedRanks:
    """Return where a job's ranks are: on those given, else on the first ones, host by host.

    Raises BadInputError for a job of too many ranks, JobError for other places that it cannot have.
    """
    if ranks is None:
        count, available = len(job.parts), len(places.hosts)
        if count > available:
            raise BadInputError(
                f"a job of {count} ranks on a fabric of {available} (valid: up to {available})"
            )
        ranks = first_ranks(count, places)
    return PlacedRanks(job, ranks, places)


def job_run(placed: PlacedRanks, ended: Ended) -> JobRun:
    """Return what is known of a job that has run."""
    start_ps = min(ended.outcome.started_ps)
    return JobRun(
        job=placed.job,
        ranks=placed.ranks,
        places=placed.places,
        started_ps=start_ps,
        duration_ps=max(ended.outcome.finished_ps) - start_ps,
        times=tuple(each.after(start_ps) for each in ended.times),
        retransmissions=ended.counted.retransmissions,
        verdict=ended.verdict,
    )

"""Jobs: what many ranks do together, as operations on streams that follow each other."""

from weft.traffic.jobs.checks import check_job
from weft.traffic.jobs.job import CollectiveCall, Group, Job, JobError, RankPart
from weft.traffic.jobs.operations import NO_STREAM, Kind, Operations, OperationsBuilder, OperationsError
from weft.traffic.jobs.times import NEVER_PS, RankTimes

__all__ = [
    "NEVER_PS",
    "NO_STREAM",
    "CollectiveCall",
    "Group",
    "Job",
    "JobError",
    "Kind",
    "Operations",
    "OperationsBuilder",
    "OperationsError",
    "RankPart",
    "RankTimes",
    "check_job",
]

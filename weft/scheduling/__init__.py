"""Jobs that arrive over time, placed on the hosts of a cluster by policies: utilisation, waiting, spread."""

from weft.scheduling.cluster import Cluster, Level, cluster_of_fabric
from weft.scheduling.outcome import Comparison, Interval, Outcome, compare
from weft.scheduling.placement import Placement
from weft.scheduling.simulation import Run, simulate
from weft.scheduling.workload import Job, Workload, workload_of

__all__ = [
    "Cluster",
    "Comparison",
    "Interval",
    "Job",
    "Level",
    "Outcome",
    "Placement",
    "Run",
    "Workload",
    "cluster_of_fabric",
    "compare",
    "simulate",
    "workload_of",
]

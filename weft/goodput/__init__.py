"""Goodput of a job over days: failures with their rates, checkpoints, restarts, hosts that are replaced."""

from weft.goodput.cluster import Cluster, FailureKind, cluster_of
from weft.goodput.history import History, Spent, live
from weft.goodput.outcome import MeasuredCheckpoint, MeasuredFailure, Outcome, Share, outcome_of

__all__ = [
    "Cluster",
    "FailureKind",
    "History",
    "MeasuredCheckpoint",
    "MeasuredFailure",
    "Outcome",
    "Share",
    "Spent",
    "cluster_of",
    "live",
    "outcome_of",
]

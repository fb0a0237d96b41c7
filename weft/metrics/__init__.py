"""Counters of a running lab for Prometheus: the exported metrics, the exposition format, a server on loopback."""

from weft.metrics.exposition import Family, rendered
from weft.metrics.families import families_of
from weft.metrics.server import MetricsServer

__all__ = ["Family", "MetricsServer", "families_of", "rendered"]

"""The commands that a host carries out, as docs/spec/endpoint-protocol.md describes them: a module for each subject.

Each names the type of its answer. Under the virtual clock hosts are given these objects; endpoint processes read them
from lines of JSON, for which all modules are imported here.
"""

from weft.traffic.commands import (
    aggregation,
    applications,
    collectives,
    connections,
    counters,
    evs,
    flows,
    jobs,
    parameters,
    programs,
    runs,
    services,
    tcp,
)

__all__ = [
    "aggregation",
    "applications",
    "collectives",
    "connections",
    "counters",
    "evs",
    "flows",
    "jobs",
    "parameters",
    "programs",
    "runs",
    "services",
    "tcp",
]

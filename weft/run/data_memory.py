"""How much memory the data of a scenario's traffic takes, held to the machine's before any of it is made."""

from __future__ import annotations

import os

from weft.errors import EnvironmentLacksError
from weft.run.spec import RunSpec
from weft.scenario import CollectiveTraffic, TrainingStepTraffic
from weft.traffic.collectives import collective_named
from weft.traffic.schedule_nodes import ELEMENT_BYTES

_GIB = 2**30


def require_memory(spec: RunSpec) -> None:
    """Check that every host's inputs, which exist at once, fit. Raises EnvironmentLacksError."""
    ranks = len(spec.fabric.hosts)
    needed = sum(_input_bytes(traffic, ranks) for traffic in spec.traffic) * ranks
    has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > has:
        raise EnvironmentLacksError(
            f"traffic: the data of {ranks} ranks take {needed / _GIB:,.0f} GiB of memory, the machine has "
            f"{has / _GIB:.0f} GiB; data: lengths needs none"
        )


def _input_bytes(traffic: object, ranks: int) -> int:
    if isinstance(traffic, CollectiveTraffic) and traffic.data == "random":
        collective = collective_named(traffic.collective)
        elements = (collective.input_elements(size, ranks) for size in traffic.sizes)
        return sum(elements) * ELEMENT_BYTES
    if isinstance(traffic, TrainingStepTraffic) and traffic.data == "random":
        return sum(layer.count * layer.gradients for layer in traffic.layers)
    return 0

"""Users' traffic patterns."""

from __future__ import annotations

import abc
from collections.abc import Iterable

import numpy as np

from weft.engine import ExtensionError
from weft.quantities.limits import MAX_FLOW_BYTES, MAX_FLOW_QUEUE_PAIRS, MAX_TIME_PS
from weft.topologies import FabricSpec
from weft.traffic.extensions.loading import user_code
from weft.traffic.patterns import Flow

MAX_FLOWS = 1 << 20
"""Most flows of one run, which an immediate's index counts."""


class TrafficPattern(abc.ABC):
    """A traffic pattern: senders, receivers, sizes and times. A scenario's `parameters` are its keyword arguments."""

    @abc.abstractmethod
    def flows(self, fabric: FabricSpec, rng: np.random.Generator) -> Iterable[Flow]:
        """Return the flows.

        Args:
            fabric: hosts, switches and links; a flow's source and destination are hosts' `index`.
            rng: random numbers drawn from it repeat with the scenario's seed.
        """


def flows_of(pattern: TrafficPattern, fabric: FabricSpec, seed: int) -> list[Flow]:
    """Return a pattern's flows, checked. Their random numbers depend on the seed alone, not on earlier runs.

    Raises:
        ExtensionError: the pattern raised, or one of its flows is not possible on this fabric; says which and why.
    """
    what = type(pattern).__name__
    rng = np.random.default_rng([seed, 0])
    with user_code(f"{what}.flows()"):
        flows = pattern.flows(fabric, rng)
        if not isinstance(flows, Iterable):
            raise ExtensionError(f"{what}.flows() returned {flows!r} (valid: an iterable of weft.Flow)")
        checked = [_checked(flow, index, what, fabric) for index, flow in enumerate(flows)]
    if not 0 < len(checked) <= MAX_FLOWS:
        raise ExtensionError(f"{what}.flows() returned {len(checked)} flows (valid: 1 to {MAX_FLOWS})")
    return checked


def _checked(flow: Flow, index: int, what: str, fabric: FabricSpec) -> Flow:
    place = f"{what}.flows(), flow {index}"
    if not isinstance(flow, Flow):
        raise ExtensionError(f"{place} is {flow!r} (valid: a weft.Flow)")
    hosts, planes = len(fabric.hosts), fabric.training_nics
    limits = {
        "source": (0, hosts - 1),
        "destination": (0, hosts - 1),
        "size_bytes": (1, MAX_FLOW_BYTES),
        "plane": (0, planes - 1),
        "start_ps": (0, MAX_TIME_PS),
        "queue_pairs": (1, MAX_FLOW_QUEUE_PAIRS),
    }
    whole = {}
    for name, (least, most) in limits.items():
        value = getattr(flow, name)
        # NumPy's integers are what its generators draw.
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
            raise ExtensionError(f"{place}: {name} is {value!r} (valid: whole numbers from {least} to {most})")
        whole[name] = int(value)
    if whole["source"] == whole["destination"]:
        raise ExtensionError(f"{place} goes from host {flow.source} to itself")
    if whole["queue_pairs"] > whole["size_bytes"]:
        raise ExtensionError(f"{place} has {flow.size_bytes} bytes for {flow.queue_pairs} queue pairs")
    if index >= MAX_FLOWS:
        raise ExtensionError(f"{what}.flows() returns more than {MAX_FLOWS} flows")
    return Flow(**whole)

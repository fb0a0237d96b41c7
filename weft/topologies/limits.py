"""Checks of a link's figures, shared by all builders."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from weft.quantities.limits import (
    MAX_DELAY_PS,
    MAX_QUEUE_CAPACITY_BYTES,
    MAX_RATE_BPS,
    MIN_QUEUE_CAPACITY_BYTES,
    MIN_RATE_BPS,
)
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.parts import LinkSpec
from weft.topologies.port_memory import link_of


class LinkArguments(TypedDict, total=False):
    """Arguments for a plane's links that most builders take; `PlaneLinks.checked` has their defaults."""

    host_rate_bps: float
    """Rate of the links between hosts and switches; by default 10 Gb/s."""
    fabric_rate_bps: float | None
    """Rate of the links between switches; by default the hosts' rate."""
    delay_ps: int
    """Propagation delay of every link; by default 1 µs."""
    queue_capacity_bytes: int | None
    """Queue of every transmitting port; by default by its rate (`weft.topologies.port_memory`)."""


@dataclass(frozen=True)
class PlaneLinks:
    """Checked figures of a plane's links; `FabricSpec.parameters` of most kinds have them by these names."""

    host_rate_bps: int
    fabric_rate_bps: int
    delay_ps: int
    queue_capacity_bytes: int | None

    @classmethod
    def checked(
        cls,
        host_rate_bps: float = 10e9,
        fabric_rate_bps: float | None = None,
        delay_ps: int = 1_000_000,
        queue_capacity_bytes: int | None = None,
    ) -> PlaneLinks:
        """Check `LinkArguments`; TopologyError names the argument and the valid range."""
        host_rate = rate("host_rate_bps", host_rate_bps)
        return cls(
            host_rate,
            host_rate if fabric_rate_bps is None else rate("fabric_rate_bps", fabric_rate_bps),
            delay(delay_ps),
            optional_queue_capacity(queue_capacity_bytes),
        )

    def link(self, rate_bps: int, delay_ps: int | None = None) -> LinkSpec:
        """Return a link of a rate; it has the plane's delay unless another is given."""
        return link_of(rate_bps, self.delay_ps if delay_ps is None else delay_ps, self.queue_capacity_bytes)

    @cached_property
    def host_link(self) -> LinkSpec:
        """A link between a host and its switch."""
        return self.link(self.host_rate_bps)

    @cached_property
    def fabric_link(self) -> LinkSpec:
        """A link between two switches."""
        return self.link(self.fabric_rate_bps)


def rate(name: str, rate_bps: float) -> int:
    """Check a link's rate and return it; TopologyError names the parameter and the valid range."""
    return require_range(name, rate_bps, MIN_RATE_BPS, MAX_RATE_BPS)


def uplink_rate(
    name: str,
    uplink_rate_bps: float | None,
    oversubscription: float | None,
    downlink_rate_bps: int,
    downlinks: int,
    uplinks: int,
    prefix: str = "",
) -> int:
    """Return the rate of a tier's uplinks: as given, from the oversubscription, or equal to the downlinks' rate.

    Oversubscription is total downlink bandwidth divided by total uplink bandwidth. `prefix` precedes it in its
    parameter's name. Raises as `rate`.
    """
    over = f"{prefix}oversubscription={oversubscription}"
    if oversubscription is None:
        return downlink_rate_bps if uplink_rate_bps is None else rate(name, uplink_rate_bps)
    if uplink_rate_bps is not None:
        raise TopologyError(f"{name}={uplink_rate_bps} and {over} exclude each other")
    is_number = isinstance(oversubscription, int | float) and math.isfinite(oversubscription)
    if not (is_number and oversubscription > 0):
        raise TopologyError(f"{over} is out of range", valid="above 0")
    if uplinks == 0:
        raise TopologyError(f"{over} means nothing without spines (spines=0)")
    return rate(name, float(round(downlinks * downlink_rate_bps / (uplinks * oversubscription))))


def delay(delay_ps: int, name: str = "delay_ps") -> int:
    """Check a link's propagation delay and return it; raises as `rate`."""
    return require_range(name, delay_ps, 0, MAX_DELAY_PS)


def queue_capacity(queue_capacity_bytes: int) -> int:
    """Check a port's queue capacity and return it; raises as `rate`."""
    return require_range(
        "queue_capacity_bytes", queue_capacity_bytes, MIN_QUEUE_CAPACITY_BYTES, MAX_QUEUE_CAPACITY_BYTES
    )


def optional_queue_capacity(queue_capacity_bytes: int | None) -> int | None:
    """Check a port's queue capacity and return it, or None for its rate's default; raises as `rate`."""
    return None if queue_capacity_bytes is None else queue_capacity(queue_capacity_bytes)

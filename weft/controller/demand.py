"""The traffic matrix from which routes by demand are computed, and what they were computed to achieve."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Demand:
    """Bytes that one queue pair carries from a host to another, over the NICs of a number."""

    source: str
    destination: str
    nic: int
    size_bytes: int


@dataclass(frozen=True)
class DemandSettings:
    """The traffic matrix, with an element for each queue pair; empty if it is unknown."""

    matrix: tuple[Demand, ...] = ()


@dataclass(frozen=True)
class DemandLoads:
    """How full a plane's fullest link between switches becomes, as the time that its bytes take at its rate.

    Attributes:
        plane: number of the plane.
        fullest_ps: with the chosen paths.
        ecmp_ps: with a hash for each queue pair: the mean of many draws.
        bound_ps: no routing does better: a switch's demand leaves and enters by its links, a queue pair by one of them.
        destinations: NICs with routes of their own.
        left_to_ecmp: NICs that have demand and routes of their own on fewer switches than planned, for lack of entries.
        most_entries: most entries that a switch holds for such routes, of one IP version.

    """

    plane: int
    fullest_ps: int
    ecmp_ps: int
    bound_ps: int
    destinations: int
    left_to_ecmp: int
    most_entries: int

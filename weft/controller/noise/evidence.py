"""A noisy part, and the figures that convict it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from weft.quantities.plain_data import PlainData

PartKind = Literal["link", "host link", "host"]
Fault = Literal["lossy", "slow", "flapping", "pausing", "straggling"]
FAULTS = get_args(Fault)
Action = Literal["cordoned", "reported"]


@dataclass(frozen=True)
class Evidence:
    """Evidence against a part, by counters: its own figure, what is usual, and both in words.

    Attributes:
        fault: what is wrong.
        measured: the figure that is unusual: a share of packets or of time, a part of the rate, a number of failures,
        or
            times the computing time of others.
        usual: the same figure of peers, or the bound for a healthy part.
        words: the counts behind the figure.

    """

    fault: Fault
    measured: float
    usual: float
    words: str


@dataclass(frozen=True)
class NoisyPart(PlainData):
    """A part that was found to be noisy, and what was done about it."""

    time_ps: int
    """When it was found, counted from when the fabric was up."""
    part: str
    """The link, or the host."""
    kind: PartKind
    """`link`: between switches. `host link`: a host's NIC, its cable or the switch's port. `host`: its computing."""
    fault: Fault
    """`lossy`: it loses packets. `slow`: it sends below its rate. `flapping`: it fails again and again. `pausing`: the
    NIC asks by PFC for long pauses. `straggling`: the host computes longer than its peers."""
    measured: float
    """Share of packets lost, part of the rate, failures, share of time paused, or times the computing time of peers."""
    usual: float
    """The same of its peers, or the bound for a healthy part."""
    evidence: str
    """The counts behind it."""
    action: Action
    """`cordoned`: `element` was taken out of use. `reported`: the part stays in use."""
    element: str
    """Element taken out of use: the link, the host (a spare takes its rank) or the plane; empty if nothing was."""
    reason: str = ""
    """Why it stays in use; empty if it does not."""

"""Power of racks over the time of a job, from when each of its ranks computed and communicated.

An accelerator is in one of four states at any time: it computes, it communicates (a collective or a message of its rank
has begun and is not done, so that its kernel runs or polls), both at once, or neither. Each state has its watts in the
table of prices. Servers' other parts, switches, NICs and transceivers draw the same at all times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from weft.cost.layout import Rack, floor_of
from weft.cost.prices import PriceTable, StateWatts
from weft.cost.rack_power import network_watts
from weft.quantities.arrays import Floats, Integers
from weft.quantities.units import PS_PER_MS, PS_PER_S
from weft.recording.tables import Table, integers_of, names_of
from weft.recording.unions import unions
from weft.topologies import FabricSpec

RAMP_PS = PS_PER_MS
"""Time in which ramps are measured."""


class State(StrEnum):
    """State of an accelerator."""

    COMPUTE = "compute"
    BOTH = "both"
    COMMUNICATE = "communicate"
    IDLE = "idle"


@dataclass(frozen=True, eq=False)
class Busy:
    """When a rank computed and communicated: begins and ends of spans in ps, each in order and apart from each other.

    Arrays are int64 of shape (n,), begins and ends of the same kind of equal length.
    """

    compute: tuple[Integers, Integers]
    communicate: tuple[Integers, Integers]


@dataclass(frozen=True, eq=False)
class Power:
    """Power over time: `watts[i]` is drawn from `since_ps[i]` on, the last until `end_ps`.

    `since_ps` is int64, `watts` float64, both of shape (n,), n ≥ 1; the first is 0.
    """

    since_ps: Integers
    watts: Floats
    end_ps: int

    @property
    def joules(self) -> float:
        """Energy of the whole time."""
        return float((self.watts * np.diff(self.since_ps, append=self.end_ps)).sum() / PS_PER_S)

    @property
    def mean_watts(self) -> float:
        """Power on average over the time."""
        return self.joules / (self.end_ps / PS_PER_S)

    @property
    def peak_watts(self) -> float:
        """Highest power."""
        return float(self.watts.max())

    @property
    def least_watts(self) -> float:
        """Lowest power."""
        return float(self.watts.min())

    @property
    def swing_watts(self) -> float:
        """Difference between the highest and the lowest power."""
        return self.peak_watts - self.least_watts

    def ramp_watts(self, window_ps: int = RAMP_PS) -> float:
        """Return the largest difference between two moments that are at most `window_ps` apart, up or down."""
        return max(_largest_rise(self.since_ps, each, window_ps) for each in (self.watts, -self.watts))


@dataclass(frozen=True, eq=False)
class PowerTrace:
    """Power of a job's time, by rack and of all.

    Attributes:
        racks: power of each rack with equipment.
        total: power of all racks.
        network_watts: power of switches, NICs, cables and transceivers, constant.
        servers_watts: power of the servers' other parts, constant.
        state_shares: share of the time of the job's accelerators in each state, on average.
        accelerators: accelerators of the job's ranks.

    """

    racks: Mapping[Rack, Power]
    total: Power
    network_watts: float
    servers_watts: float
    state_shares: Mapping[State, float]
    accelerators: int


def busy_of_operations(records: Table, rank_count: int) -> list[Busy]:
    """Return when each rank computed and communicated, from a table with a row for each of its operations."""
    ranks, kinds = integers_of(records, "rank"), names_of(records, "kind").texts()
    starts, ends = integers_of(records, "start_ps"), integers_of(records, "end_ps")
    is_compute, is_timer = kinds == "compute", kinds == "timer"
    order = np.argsort(ranks, kind="stable")
    bounds = np.searchsorted(ranks[order], np.arange(rank_count + 1))
    found = []
    for rank in range(rank_count):
        rows = order[bounds[rank] : bounds[rank + 1]]
        mine, others = rows[is_compute[rows]], rows[~is_compute[rows] & ~is_timer[rows]]
        found.append(Busy(unions(starts[mine], ends[mine]), unions(starts[others], ends[others])))
    return found


def busy_communicating(rank_count: int, end_ps: int) -> list[Busy]:
    """Return ranks that communicate all the time and compute nothing, as in a collective."""
    none, whole = np.zeros(0, np.int64), (np.array([0]), np.array([end_ps]))
    return [Busy((none, none), whole)] * rank_count


def power_trace(
    fabric: FabricSpec,
    table: PriceTable,
    states: StateWatts,
    placed: Sequence[int],
    busy: Sequence[Busy],
    end_ps: int,
    per_endpoint: int = 1,
) -> PowerTrace:
    """Return the power of a job's time.

    Args:
        fabric: where it ran; accelerators that have no rank of the job are idle.
        table: prices and watts.
        states: watts of each accelerator.
        placed: the fabric's rank of each rank of the job.
        busy: when each rank computed and communicated.
        end_ps: the job's end.
        per_endpoint: accelerators of each rank, which do the same.

    Raises:
        BadInputError: the table lacks parts for the fabric (`weft.cost.bill_of`).
    """
    floor = floor_of(fabric, table.layout, per_endpoint)
    network = network_watts(fabric, table, floor)
    constant = dict(network)
    steps: dict[Rack, list[tuple[Integers, Floats]]] = {rack: [] for rack in constant}
    servers = 0.0
    for host in fabric.hosts:
        constant[floor.racks[host.name]] += per_endpoint * (states.host + states.idle)
        servers += per_endpoint * states.host
    shares = dict.fromkeys(State, 0.0)
    for rank, own in zip(placed, busy, strict=True):
        times, watts, spent_ps = _steps_of(own, states, end_ps)
        steps[floor.racks[fabric.hosts[rank].name]].append((times, per_endpoint * watts))
        for state, time_ps in spent_ps.items():
            shares[state] += time_ps / end_ps / len(busy)
    racks = {rack: _power(constant[rack], steps[rack], end_ps) for rack in sorted(constant)}
    everything = [each for found in steps.values() for each in found]
    return PowerTrace(
        racks=racks,
        total=_power(sum(constant.values()), everything, end_ps),
        network_watts=sum(network.values()),
        servers_watts=servers,
        state_shares=shares,
        accelerators=per_endpoint * len(busy),
    )


def _steps_of(busy: Busy, states: StateWatts, end_ps: int) -> tuple[Integers, Floats, dict[State, int]]:
    """Return when an accelerator's power changes and by how much, from idle on, and the time in each state."""
    times = np.unique(np.concatenate([np.array([0, end_ps]), *busy.compute, *busy.communicate]))
    times = times[(times >= 0) & (times <= end_ps)]
    begins, lengths = times[:-1], np.diff(times)
    computes, communicates = (_is_within(begins, *each) for each in (busy.compute, busy.communicate))
    masks = {
        State.COMPUTE: computes & ~communicates,
        State.BOTH: computes & communicates,
        State.COMMUNICATE: communicates & ~computes,
        State.IDLE: ~computes & ~communicates,
    }
    watts = np.zeros(len(begins))
    for state, mask in masks.items():
        watts[mask] = states.of(state) - states.idle
    return begins, np.diff(watts, prepend=0.0), {state: int(lengths[mask].sum()) for state, mask in masks.items()}


def _is_within(times: Integers, begins: Integers, ends: Integers) -> NDArray[np.bool_]:
    """Return which times are in a span, its begin included."""
    before = np.searchsorted(begins, times, side="right")
    inside: NDArray[np.bool_] = before > np.searchsorted(ends, times, side="right")
    return inside


def _power(constant: float, steps: Sequence[tuple[Integers, Floats]], end_ps: int) -> Power:
    """Return a constant power plus changes at times."""
    times = np.concatenate([np.zeros(1, np.int64), *(each for each, _ in steps)])
    changes = np.concatenate([np.array([constant]), *(each for _, each in steps)])
    since_ps, places = np.unique(times, return_inverse=True)
    # Sums of watts leave rounding errors, which would be swings.
    watts: Floats = np.round(np.cumsum(np.bincount(places, weights=changes)), 6).astype(np.float64)
    changed = np.flatnonzero(np.diff(watts, prepend=np.nan) != 0)
    return Power(since_ps[changed], watts[changed], end_ps)


def _largest_rise(since_ps: Integers, watts: Floats, window_ps: int) -> float:
    """Return the largest rise from a value to a later one that begins at most a window after the earlier one's end."""
    largest, lowest = 0.0, deque[tuple[float, float]]()
    ends = [*since_ps[1:].tolist(), float("inf")]
    for since, end, value in zip(since_ps.tolist(), ends, watts.tolist(), strict=True):
        while lowest and lowest[0][1] < since - window_ps:
            lowest.popleft()
        if lowest:
            largest = max(largest, value - lowest[0][0])
        while lowest and lowest[-1][0] >= value:
            lowest.pop()
        lowest.append((value, end))
    return largest

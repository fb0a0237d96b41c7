"""Open workloads: flows that arrive at random, regardless of the progress of earlier flows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.errors import InvalidValueError
from weft.quantities import portable_math
from weft.quantities.units import PS_PER_S
from weft.traffic.flow_sizes import FlowSizes
from weft.traffic.patterns import Flow

MAX_FLOWS = 4_000_000


def poisson_flows(
    host_count: int,
    plane_rates_bps: Sequence[int],
    sizes: FlowSizes,
    load: float,
    duration_ps: int,
    seed: int,
) -> list[Flow]:
    """Return the flows of a time, in order of their start.

    Every host starts flows at exponential intervals, so often that on average they are `load` times the rate of all its
    ports; each goes to another host, drawn evenly, over a plane drawn by rate, and has a size drawn from `sizes`
    (HPCC, SIGCOMM 2019, section 5.1). A host's draws are its own: they do not depend on other hosts.

    Raises:
        ValueError: fewer than two hosts, a load or duration that is not above 0, or more flows than memory holds.
    """
    if host_count < 2:
        raise InvalidValueError(f"a workload of {host_count} hosts", valid="2 or more")
    if not load > 0:
        raise InvalidValueError(f"a load of {load:g}", valid="above 0")
    if duration_ps <= 0:
        raise InvalidValueError(f"a workload of {duration_ps} ps", valid="above 0")
    total_bps = sum(plane_rates_bps)
    mean_interval_ps = sizes.mean_bytes * 8 * PS_PER_S / (load * total_bps)
    expected = host_count * duration_ps / mean_interval_ps
    if expected > MAX_FLOWS:
        raise InvalidValueError(f"a workload of some {expected:.0f} flows", valid=f"up to {MAX_FLOWS:,}")
    plane_shares = np.cumsum(plane_rates_bps) / total_bps
    flows = []
    for source in range(host_count):
        draws = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, source])))
        starts = _arrivals_ps(draws, mean_interval_ps, duration_ps)
        others = np.floor(draws.random(len(starts)) * (host_count - 1)).astype(np.int64)
        destinations = others + (others >= source)
        planes = np.searchsorted(plane_shares, draws.random(len(starts)), side="right")
        flow_bytes = sizes.quantile_bytes(draws.random(len(starts)))
        flows += [
            Flow(source, destination, size_bytes, plane, start_ps)
            for destination, size_bytes, plane, start_ps in zip(
                destinations.tolist(), flow_bytes.tolist(), planes.tolist(), starts.tolist(), strict=True
            )
        ]
    return sorted(flows, key=lambda flow: (flow.start_ps, flow.source))


def _arrivals_ps(draws: np.random.Generator, mean_interval_ps: float, duration_ps: int) -> npt.NDArray[np.int64]:
    """Return the times before `duration_ps` at which a Poisson process fires."""
    blocks = []
    reached_ps = 0.0
    block = int(duration_ps / mean_interval_ps) + 16
    while reached_ps < duration_ps:
        times = reached_ps + np.cumsum(portable_math.exponential(draws, block) * mean_interval_ps)
        blocks.append(times)
        reached_ps = float(times[-1])
    times = np.concatenate(blocks)
    return times[times < duration_ps].astype(np.int64)

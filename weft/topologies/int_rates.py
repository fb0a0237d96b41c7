"""Assigns the rate codes of HPCC's INT in a fabric (docs/spec/frames.md); this module is the only place that does.

The controller gives the codes to switches and the rates to hosts. Codes 1 to 10 have standard rates. Other rates get
codes 11 to 15, then the standard codes of rates that the fabric lacks, starting from the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec
from weft.wire.headers.int_shim import INT_HOP, STANDARD_RATES_GBPS

UNKNOWN_RATE_CODE = 0
CODES = 1 << INT_HOP.field("rate_code").bits
IntRates = tuple[int, ...]
"""Bits per second by rate code; 0 for an unused code."""

STANDARD_INT_RATES: IntRates = tuple(
    10**9 * (STANDARD_RATES_GBPS[code] if code < len(STANDARD_RATES_GBPS) else 0) for code in range(CODES)
)


def int_rates(fabric: FabricSpec) -> IntRates:
    """Return the rate of each rate code in a fabric.

    Raises:
        TopologyError: the links have more different rates than there are codes.

    """
    return int_rates_of(link.link.rate_bps for link in fabric.links)


def int_rates_of(rates_bps: Iterable[int]) -> IntRates:
    """Return the rate of each rate code, given the rates of a fabric's links. Raises as `int_rates`."""
    present = set(rates_bps)
    if len(present) > CODES - 1:
        shown = ", ".join(f"{rate_bps / 10**9:g} Gb/s" for rate_bps in sorted(present))
        raise TopologyError(
            f"links of {len(present)} different rates: {shown}",
            valid=f"at most {CODES - 1} with INT, which has 4 bits for a rate",
        )
    rates = list(STANDARD_INT_RATES)
    own = sorted(present - set(STANDARD_INT_RATES))
    first_own = len(STANDARD_RATES_GBPS)
    unused = [code for code in range(first_own - 1, 0, -1) if rates[code] not in present]
    for code, rate_bps in zip([*range(first_own, CODES), *unused], own, strict=False):
        rates[code] = rate_bps
    return tuple(rates)


def rate_code(rates: Sequence[int], rate_bps: int) -> int:
    """Return the code of a port's rate in its fabric; `UNKNOWN_RATE_CODE` if it has none."""
    return rates.index(rate_bps) if rate_bps in rates[1:] else UNKNOWN_RATE_CODE

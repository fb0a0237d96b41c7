"""Rates that HPCC's INT has a code for (ARCHITECTURE.md, "INT shim"): switches are told codes, hosts read them."""

from __future__ import annotations

UNKNOWN_RATE_CODE = 0
RATE_BPS_OF_CODE = {
    code: gbps * 10**9
    for code, gbps in enumerate((0, 1, 10, 25, 40, 50, 100, 200, 400, 800, 1600), UNKNOWN_RATE_CODE)
}
"""Bits per second; 0 for the code of an unknown rate."""

_CODE_OF_RATE_BPS = {rate_bps: code for code, rate_bps in RATE_BPS_OF_CODE.items()}


def rate_code(rate_bps: int) -> int:
    """Code of a port's rate; `UNKNOWN_RATE_CODE` for a rate that has none."""
    return _CODE_OF_RATE_BPS.get(rate_bps, UNKNOWN_RATE_CODE)

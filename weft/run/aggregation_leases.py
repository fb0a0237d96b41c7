"""How long an aggregation job may be idle before others may take its slots: from the scenario, or from the hosts."""

from __future__ import annotations

from weft.errors import BadInputError
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_S
from weft.traffic.control import EndpointGroup


def lease_s(chosen_ps: int | None, hosts: EndpointGroup) -> float:
    """Return the lease in seconds of the controller's clock.

    A reduction that waits for a worker is not idle: the other workers retransmit, after times that double up to a
    bound. A lease is at least twice that bound, so a job in the middle of a reduction never looks idle.

    Raises:
        BadInputError: the chosen lease is shorter.

    """
    least_ps = 2 * hosts.longest_repetition_ps()
    if chosen_ps is not None and chosen_ps < least_ps:
        least = f"{format_time(least_ps)} or more, twice the longest time after which a worker repeats itself"
        raise BadInputError(f"aggregation.lease: {format_time(chosen_ps)} (valid: {least})")
    return (chosen_ps or least_ps) * hosts.dilation / PS_PER_S

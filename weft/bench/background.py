"""Traffic that loads a fabric while something else is measured."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from weft.bench.setup import Setup
from weft.bench.streams import MOST_FLOWS
from weft.quantities.units import PS_PER_S
from weft.traffic.header_sizes import overhead_bytes
from weft.traffic.patterns import Flow

MESSAGE_BYTES = 1 << 18


def payload_share(setup: Setup) -> float:
    """Return the share of a full packet's frame that is payload."""
    options = setup.subject.spec.options
    payload = options.mtu_bytes
    return payload / (payload + overhead_bytes(options.ip_version, options.int_telemetry))


def background(
    setup: Setup, load: float, until_ps: int, without: Collection[int] = (), message_bytes: int = MESSAGE_BYTES
) -> list[Flow]:
    """Return messages between pairs of ranks, at a share of their NICs' rate on the wire, from the start on.

    Args:
        setup: the fabric; each of its `pairs` sends equal messages in equal intervals.
        load: share of the rate, headers included; 0 for no messages.
        until_ps: the last message begins before.
        without: ranks that neither send nor receive; if that leaves no pair, all do.
        message_bytes: size of a message.
    """
    pairs = [pair for pair in setup.subject.pairs if not set(pair) & set(without)] or list(setup.subject.pairs)
    if not load:
        return []
    interval_ps = message_bytes * 8 * PS_PER_S / (setup.subject.rank_rate_bps * load * payload_share(setup))
    count = min(max(1, math.ceil(until_ps / interval_ps)), MOST_FLOWS // (len(pairs) * setup.subject.nics))
    # Pairs begin one behind the other, or all their messages would meet at the same moments.
    return [
        flow
        for number in range(count)
        for place, (source, destination) in enumerate(pairs)
        for flow in setup.transfer(
            source, destination, message_bytes, round((number + place / len(pairs)) * interval_ps)
        )
    ]


def with_background(setup: Setup, item: dict[str, Any], flows: list[Flow]) -> list[dict[str, Any]]:
    """Return the traffic of a trial: an item, and flows together with it if there are any."""
    return [{"together": [item, setup.flows(flows)]}] if flows else [item]

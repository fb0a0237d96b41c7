"""Random spraying at the line's rate against a model of its own: FIFO queues that packets enter at random.

A permutation on a non-blocking fat tree fills every link. At random, a link is offered its rate on average only, so its
queue walks at random and what waits at the end makes flows late. The model has no windows, switches or hosts, only
Lindley's recursion for each link, from the hosts up and down again. If choices of switches or flows depended on each
other, or were not even, the emulator's queues would be longer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from weft import Fabric, topologies
from weft.recording.ideal_times import IdealTimes
from weft.scenario import RoutingSection, TransportSection
from weft.traffic.header_sizes import AETH, overhead_bytes
from weft.traffic.patterns import Flow, permutation

PORTS, HALF = 8, 4
HOSTS = PORTS**3 // 4
MTU_BYTES = 4096
SIZE_BYTES = 1_000_000
PACKETS = -(-SIZE_BYTES // MTU_BYTES)
RATE_BPS, DELAY_PS = 100e9, 1_000_000
FRAME_PS = 8 * (MTU_BYTES + overhead_bytes(4, int_telemetry=False)) / RATE_BPS * 1e12
ACK_INTERVAL = 4
ACKNOWLEDGEMENT_PS = 8 * (AETH + overhead_bytes(4, int_telemetry=False)) / RATE_BPS * 1e12
SERVICE_PS = FRAME_PS + ACKNOWLEDGEMENT_PS / ACK_INTERVAL
"""A link carries the acknowledgements of what comes the other way."""

Times = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


def left(arrival_ps: Times, queue: Numbers) -> Times:
    """When packets have arrived at the far end of the links whose queues they entered; -1: none, at once."""
    departure_ps = arrival_ps.copy()
    order = np.lexsort((arrival_ps, queue))
    order = order[queue[order] >= 0]
    for one in np.split(order, np.flatnonzero(np.diff(queue[order])) + 1):
        served = np.arange(len(one)) * SERVICE_PS
        # Lindley: what waits is the most that arrivals have ever been ahead of service.
        departure_ps[one] = np.maximum.accumulate(arrival_ps[one] - served) + served + SERVICE_PS + DELAY_PS
    return departure_ps


def late_ps(flows: list[Flow], seed: int) -> Times:
    """By how much each flow ends later than without others."""
    rng = np.random.default_rng(seed)
    source = np.repeat([flow.source for flow in flows], PACKETS)
    destination = np.repeat([flow.destination for flow in flows], PACKETS)
    leaf, to_leaf = source // HALF, destination // HALF
    pod, to_pod = leaf // HALF, to_leaf // HALF
    spine, core = rng.integers(0, HALF, (2, len(source)))
    climbs, crosses = leaf != to_leaf, pod != to_pod
    sent_ps = (np.tile(np.arange(PACKETS), len(flows)) + 1) * SERVICE_PS + DELAY_PS
    at_ps = sent_ps
    for queue, uses in (
        (leaf * HALF + spine, climbs),
        ((pod * HALF + spine) * HALF + core, crosses),
        ((to_pod * HALF + spine) * HALF + core, crosses),
        (to_leaf * HALF + spine, climbs),
        (destination, np.ones_like(climbs)),
    ):
        at_ps = left(at_ps, np.where(uses, queue, -1))
    # The last packet to arrive need not be the last that was sent.
    last_ps = np.maximum.reduceat(at_ps, np.arange(0, len(source), PACKETS))
    hops = (1 + 2 * climbs + 2 * crosses)[::PACKETS]
    alone_ps = (PACKETS + hops) * FRAME_PS + (1 + hops) * DELAY_PS
    # Its acknowledgement goes first, but at each hop the frame that is being sent has half its time left.
    return last_ps - alone_ps + (1 + hops) * FRAME_PS / 2


@pytest.fixture(scope="module")
def emulated_late_ps() -> Times:
    """The same in the emulator."""
    fabric = topologies.fat_tree(
        pods=PORTS, leaves_per_pod=HALF, spines_per_pod=HALF, cores_per_spine=HALF, hosts_per_leaf=HALF,
        host_rate_bps=RATE_BPS, delay_ps=DELAY_PS, queue_capacity_bytes=4 << 20,
    )  # fmt: skip
    transport = TransportSection(
        congestion_control="fixed-window",
        parameters={"window": "8MB"},
        retransmission="selective-repeat",
        reordering_window=10**9,
        ack_interval=ACK_INTERVAL,
    )
    with Fabric(
        fabric,
        clock="virtual",
        seed=1,
        mtu_bytes=MTU_BYTES,
        int_telemetry=False,
        routing=RoutingSection(load_balancing="random"),
        transport=transport,
    ) as running:
        result = running.permutation(SIZE_BYTES, data="lengths")
        assert result.retransmissions == 0
        ends = (result.records[name] for name in ("source", "destination", "plane", "size_bytes"))
        lone_ps = IdealTimes.of_fabric(running.topology, running.options).of(*ends)
    return np.asarray(result.records["completion_ps"] - lone_ps, np.float64)


def test_flows_are_as_late_as_random_walks_of_queues_make_them(emulated_late_ps: Times) -> None:
    flows = permutation(HOSTS, SIZE_BYTES, seed=1)
    expected_ps = [float(late_ps(flows, seed).mean()) for seed in range(4)]
    assert emulated_late_ps.mean() == pytest.approx(np.mean(expected_ps), rel=0.08)
    # It is theory that misses the line's rate: flows are late by many packets' service times.
    assert min(expected_ps) > 20 * SERVICE_PS

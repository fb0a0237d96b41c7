"""A ring of hosts takes over in-network reductions when their trees have failed but hosts still reach each other.

Hosts reduce the lanes that they would have sent, with the switches' operation, so results are bit-identical to the
network's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft.clocks.lab import Lab
from weft.controller.reachability import connected_parts
from weft.jobs.plain_jobs import collectives_job
from weft.run.jobs import rank_places
from weft.topologies import Endpoint
from weft.traffic.aggregation_format import Operation
from weft.traffic.control import EndpointGroup
from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall
from weft.traffic.jobs.placing import PlacedRanks
from weft.traffic.moved_streams import StoppedStreams
from weft.traffic.striping import joined

_COLLECTIVE = "allreduce"


def has_ring(lab: Lab, hosts: Sequence[str]) -> bool:
    """Return whether every plane in use connects the hosts."""
    controller, in_use = lab.controller, lab.operations.planes_in_use
    parts = connected_parts(controller.fabric, controller.failures)
    return all(
        len({parts[Endpoint(host, nic.number)] for host in hosts}) == 1
        for nic in lab.fabric.hosts[0].nics
        if nic.plane in in_use
    )


def reduce_in_ring(
    lab: Lab, endpoints: EndpointGroup, stopped: StoppedStreams, ranks: Sequence[int], traffic_class: int
) -> None:
    """Have ranks reduce the messages they have posted to stopped streams, in a traffic class.

    Raises RunError if the ring fails.
    """

    def ring(files: list[Path], count: int, dtype: DataType, operation: Operation) -> None:
        in_use = lab.operations.planes_in_use  # may differ from the previous ring's
        rates_bps = lab.fabric.nic_rates_bps(in_use)
        if lab.options.transport.kind.spans_planes:
            rates_bps = joined(rates_bps)
        places = rank_places(lab.fabric, rates_bps, lab.options.scheduling.data_classes)
        call = CollectiveCall(_COLLECTIVE, count * dtype.element_bytes, "ring", dtype, operation)
        job = collectives_job("ring in place of trees", [call], len(ranks))
        job = replace(job, traffic_classes={_COLLECTIVE: traffic_class})
        endpoints.run(endpoints.prepare_job(PlacedRanks(job, ranks, places), files))

    with tempfile.TemporaryDirectory(dir=lab.directory) as directory:
        stopped.reduce(Path(directory), ring)

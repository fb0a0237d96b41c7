"""Reductions in the network whose trees have failed, where hosts still reach each other: the hosts' ring takes over.

Hosts reduce the lanes that they would have sent, with the switches' operation, so the results are those of the network
to the bit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft.clocks.lab import Lab
from weft.controller.reachability import connected_parts
from weft.run.collectives import collective_spec, found_collective
from weft.topologies import Endpoint
from weft.traffic.aggregation_format import Operation
from weft.traffic.control import EndpointGroup
from weft.traffic.data_types import DataType
from weft.traffic.moved_streams import StoppedStreams


def has_ring(lab: Lab, hosts: Sequence[str]) -> bool:
    """Return whether every plane in use joins hosts."""
    controller, in_use = lab.controller.controller, lab.operations.planes_in_use
    parts = connected_parts(controller.fabric, controller.failures)
    return all(
        len({parts[Endpoint(host, nic.number)] for host in hosts}) == 1
        for nic in lab.fabric.hosts[0].nics
        if nic.plane in in_use
    )


def reduce_in_ring(lab: Lab, endpoints: EndpointGroup, stopped: StoppedStreams) -> None:
    """Have all ranks reduce what they have posted to streams that have stopped. Raises RunError if the ring fails."""
    all_reduce, in_use = found_collective("allreduce"), lab.operations.planes_in_use

    def ring(files: list[Path], count: int, dtype: DataType, operation: Operation) -> None:
        spec = collective_spec(lab.fabric, all_reduce, "ring", count, dtype, operation.name.lower())
        rates_bps = [nic.link.rate_bps if nic.plane in in_use else 0 for nic in lab.fabric.hosts[0].nics]
        spec = replace(spec, plane_rates_bps=tuple(rates_bps))
        endpoints.run(endpoints.prepare_collective(spec, "ring", files))

    with tempfile.TemporaryDirectory(dir=lab.directory) as directory:
        stopped.reduce(Path(directory), ring)

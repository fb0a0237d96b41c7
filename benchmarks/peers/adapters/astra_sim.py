"""ASTRA-sim with its analytical network that knows congestion (github.com/astra-sim/astra-sim).

It reads a Chakra trace for each rank, the network as YAML (NetworkParser.cpp) and the hosts as JSON (Sys.cc), and
writes a line to log/log.log when a rank's operation is done, with `trace-enabled` (Workload.cc). A message goes whole
over a link before it goes on to the next, behind those that came earlier: there are no packets, no headers, no
acknowledgements and no congestion control.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from peers.peer import Peer, UnfitWorkError, require_all_ended
from peers.work import Work
from weft.jobs.traces import TRACE_FORMATS
from weft.jobs.traces.assembling import JobAssembler, RankAssembler
from weft.jobs.traces.chakra.messages import NodeType
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_NS, PS_PER_US
from weft.traffic.jobs import Job

_GIB = 1 << 30
_TRACE, _LOG = "flows", Path("log") / "log.log"
_DONE = re.compile(
    rf"callback,sys->id=\d+, tick=(\d+), node->id=\d+, node->name=flow (\d+), node->type={NodeType.RECEIVE:d}$",
    re.MULTILINE,
)


class AstraSim(Peer):
    """ASTRA-sim's analytical network, with links that messages wait for."""

    name = "astra-sim"
    title = "ASTRA-sim"
    variable = "WEFT_ASTRA_SIM"
    source = (
        "github.com/astra-sim/astra-sim: build/astra_analytical/build.sh, with protobuf; the variable names "
        "AstraSim_Analytical_Congestion_Aware"
    )

    def check(self, work: Work) -> None:
        """Refuse networks other than one switch, and flows that ranks cannot start in time."""
        shape = work.fabric.parameters
        switch = shape["kind"] == "leaf_spine" and len(work.fabric.switches) == 1
        _require(switch, work, f"{len(work.fabric.switches)} switches ({shape['kind']})", "a leaf_spine of one leaf")
        sources = {flow.source for flow in work.flows}
        _require(len(sources) == len(work.flows), work, "several flows of a host: it sends one at a time", "one")
        for flow in work.flows:
            _require(flow.start_ps % PS_PER_US == 0, work, f"{flow}", "starts in whole microseconds")

    def write(self, work: Work, folder: Path) -> Sequence[str]:
        """Write a Chakra trace for each host, the network, the hosts' parameters, and that there is no other memory."""
        TRACE_FORMATS["chakra"].write(job(work), folder / _TRACE)
        link = work.fabric.hosts[0].nics[0].link
        network = {
            "topology": ["Switch"],
            "npus_count": [len(work.fabric.hosts)],
            "bandwidth": [link.rate_bps / 8 / _GIB],  # it calls 2^30 bytes a gigabyte
            "latency": [link.delay_ps / PS_PER_NS],
        }
        (folder / "network.yml").write_text(yaml.safe_dump(network), encoding="ascii")
        system = {"scheduling-policy": "LIFO", "endpoint-delay": 0, "trace-enabled": 1}
        (folder / "system.json").write_text(json.dumps(system), encoding="ascii")
        (folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}', encoding="ascii")
        (folder / _LOG).unlink(missing_ok=True)
        return [
            f"--workload-configuration={folder / _TRACE}",
            f"--system-configuration={folder / 'system.json'}",
            f"--remote-memory-configuration={folder / 'memory.json'}",
            f"--network-configuration={folder / 'network.yml'}",
        ]

    def read(self, work: Work, folder: Path, printed: str) -> tuple[int, Integers | None]:
        """Read when messages arrived, in nanoseconds."""
        log = (folder / _LOG).read_text(encoding="utf-8")
        ends_ns = {int(number): int(tick) for tick, number in _DONE.findall(log)}
        require_all_ended(work, self.title, len(ends_ns))
        ends_ps = np.array([ends_ns[number] for number in range(len(work.flows))], np.int64) * PS_PER_NS
        return int(ends_ps.max()), ends_ps - work.columns["start_ps"]


def _require(holds: bool, work: Work, problem: str, valid: str) -> None:
    if not holds:
        raise UnfitWorkError(f"ASTRA-sim has no place for {problem}", place=work.title, valid=valid)


def job(work: Work) -> Job:
    """Return the flows as a job: each a send, after a computation until its start, and a receive.

    Names and tags are the flows' numbers, from 0.
    """
    ranks = [RankAssembler() for _ in work.fabric.hosts]
    for number, flow in enumerate(work.flows):
        source, destination = ranks[flow.source], ranks[flow.destination]
        before = [source.operations.compute(flow.start_ps)] if flow.start_ps else []
        name, size_bytes = f"flow {number}", flow.size_bytes
        peer = source.peer_slot(flow.destination)
        source.operations.send(peer, size_bytes, number, after=before, name=name)
        destination.operations.receive(destination.peer_slot(flow.source), size_bytes, number, name=name)
    assembler = JobAssembler(work.title)
    for number, rank in enumerate(ranks):
        assembler.add_rank(number, rank, work.title)
    return assembler.job()


KIND = AstraSim()

"""htsim_uec, the simulator of the Ultra Ethernet Consortium (github.com/ultraethernet/uet-htsim, htsim/sim).

It reads a connection matrix (connection_matrix.cpp) and a fat tree (fat_tree_topology.cpp), which are formats of
Weft's, too (`htsim_flows`, `htsim_topo`), and prints a line when a flow ends (uec.cpp). Its hosts always run UEC's
transport with NSCC. A work with another transport has its flows carried in both, each by its own transport.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from peers.peer import Peer, UnfitWorkError, require_all_ended
from peers.work import Work
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_NS, PS_PER_US

HEADER_BYTES = 64
"""Of a packet; its option -mtu takes data and header together."""
PATHS = 64
"""Over which its hosts spray."""
_MOST_BYTES = (1 << 31) - 1
_FINISHED = re.compile(r"^Flow \S+ flowId (\d+) .* finished at ([\d.e+]+) ", re.MULTILINE)


class HtsimUec(Peer):
    """The consortium's simulator with its Ultra Ethernet transport."""

    name = "htsim-uec"
    title = "htsim_uec"
    variable = "WEFT_HTSIM"
    executable = "htsim_uec"
    source = "github.com/ultraethernet/uet-htsim, htsim/sim/CMakeLists.txt builds it"

    def check(self, work: Work) -> None:
        """Refuse what its files have no words for."""
        shape, options = work.fabric.parameters, work.spec.options
        whole_tree = shape["kind"] == "fat_tree" and shape["planes"] == 1
        _require(whole_tree, work, f"{shape['kind']} of {shape['planes']} planes", "a fat_tree of one plane")
        _require(
            work.fabric.hosts[0].nics[0].link.delay_ps % PS_PER_NS == 0, work, "part of a nanosecond", "whole ones"
        )
        for flow in work.flows:
            fits = flow.start_ps % PS_PER_US == 0 and flow.size_bytes <= _MOST_BYTES and flow.queue_pairs == 1
            valid = f"starts in whole microseconds, up to {_MOST_BYTES:,} B, one queue pair"
            _require(fits, work, f"{flow}", valid)
        topology(work)
        if options.ecn.profile is not None:
            _queues(work)

    def write(self, work: Work, folder: Path) -> Sequence[str]:
        """Write the connection matrix and the fat tree.

        Without `ecn` in the scenario the simulator chooses its queues and marks itself, and prints them.
        """
        matrix, tree = folder / "flows.cm", folder / "tree.topo"
        matrix.write_text(connection_matrix(work), encoding="ascii")
        tree.write_text(topology(work), encoding="ascii")
        options = work.spec.options
        given: dict[str, object] = {
            "-tm": matrix,
            "-topo": tree,
            "-mtu": options.mtu_bytes + HEADER_BYTES,
            "-linkspeed": work.fabric.hosts[0].nics[0].link.rate_bps // 10**6,
            "-paths": PATHS,
            "-sender_cc_algo": "nscc",
            "-sack_threshold": 1,  # unacknowledged bytes at which a receiver answers: each packet
            "-seed": options.seed,
            "-end": work.stop_ps // PS_PER_US,
            "-o": folder / "log.dat",
        }
        words = [str(word) for option in given.items() for word in option]
        return words if options.ecn.profile is None else [*words, *_queues(work)]

    def read(self, work: Work, folder: Path, printed: str) -> tuple[int, Integers | None]:
        """Read when flows finished, in microseconds of six digits at most: completion times are rounded to those."""
        ends_us = {int(number): float(end_us) for number, end_us in _FINISHED.findall(printed)}
        require_all_ended(work, "the simulator", len(ends_us))
        ends_ps = np.array([round(ends_us[number] * PS_PER_US) for number in range(1, len(work.flows) + 1)], np.int64)
        return int(ends_ps.max()), ends_ps - work.columns["start_ps"]


def _require(holds: bool, work: Work, problem: str, valid: str) -> None:
    if not holds:
        raise UnfitWorkError(f"htsim_uec has no place for {problem}", place=work.title, valid=valid)


def _queues(work: Work) -> Sequence[str]:
    """Return the options for queues and marks, both in packets."""
    options = work.spec.options
    packet_bytes = options.mtu_bytes + HEADER_BYTES
    profile, capacity = options.ecn.profile, work.fabric.hosts[0].nics[0].link.queue_capacity_bytes
    assert profile is not None, "asked for only where there are marks"
    sizes = {"queues": capacity, "kmin": profile.kmin_bytes, "kmax": profile.kmax_bytes}
    for name, size_bytes in sizes.items():
        _require(size_bytes % packet_bytes == 0, work, f"{name} of {size_bytes} B", f"multiples of {packet_bytes} B")
    _require(profile.pmax == 1, work, f"pmax {profile.pmax}", "1")
    packets = [str(size_bytes // packet_bytes) for size_bytes in sizes.values()]
    return ["-q", packets[0], "-ecn", *packets[1:]]


def connection_matrix(work: Work) -> str:
    """Return the flows, numbered from 1. UecSrc::connectPort takes a start for microseconds."""
    rows = [
        f"{flow.source}->{flow.destination} id {number} start {flow.start_ps // PS_PER_US} size {flow.size_bytes}"
        for number, flow in enumerate(work.flows, start=1)
    ]
    return "\n".join([f"Nodes {len(work.fabric.hosts)}", f"Connections {len(rows)}", *rows, ""])


def topology(work: Work) -> str:
    """Return the fat tree. Raises UnfitWorkError for one with other than whole oversubscription."""
    shape = work.fabric.parameters
    leaves, spines, hosts, cores, pods = (
        _whole(shape, key) for key in ("leaves_per_pod", "spines_per_pod", "hosts_per_leaf", "cores_per_spine", "pods")
    )
    host_bps, fabric_bps, core_bps = (_whole(shape, f"{tier}_rate_bps") for tier in ("host", "fabric", "core"))
    ratios = [Fraction(hosts * host_bps, spines * fabric_bps), Fraction(leaves * fabric_bps, cores * core_bps)]
    for ratio in ratios:
        _require(ratio.denominator == 1, work, f"an oversubscription of {float(ratio):g}", "whole ones")
    leaf, spine = (f"Oversubscribed {ratio}" for ratio in ratios)
    tiers = [
        ("Tier 0", leaf, f"Radix_Down {hosts}", f"Radix_Up {spines}", *_links(shape, host_bps)),
        ("Tier 1", spine, f"Radix_Down {leaves}", f"Radix_Up {cores}", *_links(shape, fabric_bps), "Bundle 1"),
        ("Tier 2", f"Radix_Down {pods}", *_links(shape, core_bps), "Bundle 1"),
    ]
    header = f"Nodes {len(work.fabric.hosts)}\nTiers 3\nPodsize {leaves * hosts}"
    return "\n\n".join([header, *("\n".join(tier) for tier in tiers)]) + "\n"


def _links(shape: Mapping[str, object], rate_bps: int) -> Sequence[str]:
    return (
        f"Downlink_speed_Gbps {rate_bps // 10**9}",
        f"Downlink_Latency_ns {_whole(shape, 'delay_ps') // PS_PER_NS}",
        "Switch_Latency_ns 0",
    )


def _whole(shape: Mapping[str, object], key: str) -> int:
    value = shape[key]
    assert isinstance(value, int), key
    return value


KIND = HtsimUec()

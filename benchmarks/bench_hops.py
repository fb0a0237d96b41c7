"""Packet-hops per second in virtual time: leaf/spine fabrics of switches that run fabric.p4, in partitions.

    .venv/bin/python benchmarks/bench_hops.py [--leaves N…] [--rounds N] [--workers N] [--json] [--realtime]

A packet-hop is one packet through one switch: parse, tables, queue, deparse, link. Fabrics of n leaves, n spines and n
hosts on each leaf are programmed by the controller over P4Runtime, ECN and INT included. In every round each host
sends a burst at its line rate to its peer, a host of another leaf, three hops away; the next round begins when
all have arrived. Beside each stands the null program on as many switches, ports, links and packets, in rows of three
switches; it sends everything to one port, whose rate is that of all the hosts.
Every switch is a partition, and so are the hosts of a leaf. Only the run is timed: one worker in processor time,
several in real time; each figure is the best of several rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fabric_setup import compiled_fabric, program_over_p4runtime, write_frame
from figures import Figure, argument_parser, report
from scheduling import pin_this_process

from compiler import compile_file
from engine import Engine, Link, Partitions, TransmitPort
from switch.bmv2json import load_program
from switch.native import NativeSwitch
from topologies import FabricSpec, leaf_spine
from weft.program import Program
from weft.virtual.placement import engines_by_node

RATE_BPS = 400e9
DELAY_PS = 500_000
PAYLOAD_BYTES = 128
BURST_PACKETS = 32
HOPS = 3
NULL_PORT = 2
GOAL_HOPS_PER_S = 2e6
GOAL_TIMES_NULL = 0.4
GOAL_TIMES_SMALLER = 0.7
LINEAR_FROM = 8
GOAL_TIMES_ONE_WORKER = 1.6


@dataclass
class Rig:
    """A fabric in partitions: its switches, what each host sends through, and where what it gets ends."""

    partitions: Partitions
    switches: list[NativeSwitch] = field(default_factory=list)
    senders: list[TransmitPort] = field(default_factory=list)
    sinks: list[TransmitPort] = field(default_factory=list)

    def add_host(self, engine: Engine, leaf: NativeSwitch, port: int, rate_bps: int, delay_ps: int) -> None:
        """A host that sends to this port of a switch."""
        link = Link(engine, delay_ps=delay_ps)
        link.connect(leaf.native, port)
        self.senders.append(TransmitPort(engine, link, rate_bps=rate_bps))

    def add_sink(self, engine: Engine) -> TransmitPort:
        """Where packets end: a queue without room counts what comes and lets it go."""
        sink = TransmitPort(engine, Link(engine), queue_capacity_bytes=1)
        self.sinks.append(sink)
        return sink

    def hops(self) -> int:
        """Packets that switches have received so far."""
        return sum(switch.native.received_packets for switch in self.switches)

    def arrived(self) -> int:
        """Packets that have come to sinks so far."""
        return sum(sink.stats()["tail_dropped"]["packets"] for sink in self.sinks)


def transmit_port(switch: NativeSwitch, number: int, rate_bps: int, delay_ps: int) -> Link:
    """Give the switch this port; the link behind it is still to be connected."""
    link = Link(switch.engine, delay_ps=delay_ps)
    switch.native.attach_port(number, TransmitPort(switch.engine, link, rate_bps=rate_bps))
    return link


def fabric_rig(fabric: FabricSpec, program: Program) -> Rig:
    """The fabric, programmed by the controller."""
    rig = Rig(Partitions(seed=1))
    engines = engines_by_node(fabric, rig.partitions)
    switches = {spec.name: NativeSwitch(engines[spec.name], spec.name) for spec in fabric.switches}
    rig.switches += switches.values()
    for edge in fabric.links:
        for near, far in ((edge.a, edge.b), (edge.b, edge.a)):
            rate_bps, delay_ps = edge.link.rate_bps, edge.link.delay_ps
            if near.node not in switches:
                rig.add_host(engines[near.node], switches[far.node], far.port, rate_bps, delay_ps)
                continue
            link = transmit_port(switches[near.node], near.port, rate_bps, delay_ps)
            if far.node in switches:
                link.connect(switches[far.node].native, far.port)
            else:
                link.connect(rig.add_sink(engines[far.node]))
    program_over_p4runtime(fabric, program, switches)
    return rig


def null_rig(fabric: FabricSpec) -> Rig:
    """As many hosts on as many rows of three switches that run the null program."""
    rig = Rig(Partitions(seed=1))
    document = compile_file(Path(__file__).parent / "null.p4").json_text().encode()
    hosts = fabric.hosts
    for leaf in sorted({host.nic(0).leaf for host in hosts}):
        row = [NativeSwitch(rig.partitions.add(), f"{leaf} {place}") for place in range(HOPS)]
        attached = [host.nic(0) for host in hosts if host.nic(0).leaf == leaf]
        rate_bps = sum(nic.link.rate_bps for nic in attached)
        for switch, following in zip(row, [*row[1:], None], strict=True):
            switch.load(load_program(document))
            link = transmit_port(switch, NULL_PORT, rate_bps, attached[0].link.delay_ps)
            if following is None:
                link.connect(rig.add_sink(rig.partitions.add()))
            else:
                link.connect(following.native, 1)
        group = rig.partitions.add()
        for nic in attached:
            rig.add_host(group, row[0], nic.leaf_port, nic.link.rate_bps, nic.link.delay_ps)
        rig.switches += row
    return rig


def frames(fabric: FabricSpec) -> list[bytes]:
    """What each host sends: an RDMA WRITE with room for INT, to the next leaf but one's host of the same number."""
    hosts = fabric.hosts
    on_leaf = len(fabric.switch(hosts[0].nic(0).leaf).host_ports)
    return [
        write_frame(
            host.nic(0), hosts[(index + 2 * on_leaf) % len(hosts)].nic(0), index, bytes(PAYLOAD_BYTES)
        )
        for index, host in enumerate(hosts)
    ]


def best_rate(rig: Rig, bursts: Iterable[bytes], rounds: int, workers: int = 1) -> float:
    """Packet-hops per second. RuntimeError if a packet is lost on the way."""
    rig.partitions.workers = workers
    clock_s = time.thread_time if workers == 1 else time.perf_counter
    sent = list(zip(rig.senders, bursts, strict=True))
    best = 0.0
    for _ in range(rounds):
        hops, arrived = rig.hops(), rig.arrived()
        for sender, frame in sent:
            for _ in range(BURST_PACKETS):
                sender.enqueue(frame)
        start_s = clock_s()
        rig.partitions.run()
        elapsed_s = clock_s() - start_s
        packets = len(sent) * BURST_PACKETS
        made, ended = rig.hops() - hops, rig.arrived() - arrived
        if (made, ended) != (HOPS * packets, packets):
            raise RuntimeError(f"{packets} packets made {made} hops, and {ended} of them arrived")
        best = max(best, made / elapsed_s)
    return best


def measure(sizes: list[int], rounds: int, workers: int) -> list[Figure]:
    """All figures; the rates at the second size are what larger ones are compared with."""
    figures: list[Figure] = []
    rates: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = compiled_fabric(Path(folder))
        for size in sizes:
            fabric = leaf_spine(
                planes=1,
                leaves=size,
                spines=size,
                hosts_per_leaf=size,
                host_rate_bps=RATE_BPS,
                delay_ps=DELAY_PS,
            )
            bursts = frames(fabric)
            null = best_rate(null_rig(fabric), bursts, rounds)
            rig = fabric_rig(fabric, program)
            rate = rates[size] = best_rate(rig, bursts, rounds)
            name = f"{size * size} endpoints, {2 * size} switches"
            figures += [
                Figure(name, rate, "hops/s", goal=GOAL_HOPS_PER_S),
                Figure("  beside the null program", null, "hops/s", "null", rate / null, GOAL_TIMES_NULL),
            ]
            if LINEAR_FROM in rates and size > LINEAR_FROM:
                ratio = rate / rates[LINEAR_FROM]
                beside = f"{LINEAR_FROM**2} endpoints"
                figures.append(Figure("  linear", rate, "hops/s", beside, ratio, GOAL_TIMES_SMALLER))
            if workers > 1:
                together = best_rate(rig, bursts, rounds, workers)
                goal = GOAL_TIMES_ONE_WORKER if workers == 2 and size >= LINEAR_FROM else None
                figures.append(
                    Figure(f"  {workers} workers", together, "hops/s", "one", together / rate, goal)
                )
    return figures


def main() -> None:
    """Print the figures."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument(
        "--leaves",
        type=int,
        nargs="+",
        default=[4, 8, 32, 64],
        help="of each fabric, and spines, and hosts a leaf",
    )
    parser.add_argument("--rounds", type=int, default=30, help="of which the best counts")
    parser.add_argument("--workers", type=int, default=2, help="whose rate is compared with one's; 1: none")
    options = parser.parse_args()
    if options.workers == 1:
        pin_this_process(1, realtime=options.realtime)
    figures = measure(options.leaves, options.rounds, options.workers)
    report("packet-hops in virtual time", figures, as_json=options.json)


if __name__ == "__main__":
    main()

"""Packet-hops per second in virtual time: leaf/spine fabrics of switches that run fabric.p4, in partitions.

    .venv/bin/python benchmarks/bench_hops.py [--leaves N…] [--rounds N] [--workers N] [--json] [--realtime]

A packet-hop is one packet through one switch: parse, tables, queue, deparse, link. Fabrics of n leaves, n spines and n
hosts on each leaf are programmed by the controller over P4Runtime, ECN and INT included. In every round each host
sends a burst at its line rate to its peer, a host of another leaf, three hops away; the next round begins when
all have arrived. Beside each stands the null program on as many switches, ports, links and packets, in rows of three
switches; it sends everything to one port, whose rate is that of all the hosts.
Every switch is a partition, and so are the hosts of a leaf. Only the run is timed: one worker in processor time,
several in real time. Each figure is the best of several rounds, and what is compared takes turns. What several workers
can reach at most on this machine is measured with as many independent fabrics at once: two
virtual processors may be one real one.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from fabric_setup import compiled_fabric, program_over_p4runtime, write_frame
from figures import Figure, argument_parser, report
from scheduling import pin_this_process

from weft.clocks.virtual.placement import engines_by_node
from weft.compiler import compile_file
from weft.engine import Engine, Link, Partitions, TransmitPort
from weft.scenario.program import Program
from weft.switch.bmv2json import load_program
from weft.switch.native import NativeSwitch
from weft.topologies import FabricSpec, LinkSpec, leaf_spine

RATE_BPS = 400e9
DELAY_PS = 500_000
PAYLOAD_BYTES = 128
BURST_PACKETS = 32
HOPS = 3
NULL_PORT = 2
GOAL_HOPS_PER_S = 2e6
GOAL_TIMES_NULL = 0.4
LARGEST_WITH_GOALS = 32
"""Leaves of the largest fabric that these two are for, and that workers share here: 1,024 endpoints."""
GOAL_TIMES_SMALLER = 0.7
LINEAR_FROM = 8
GOAL_TIMES_ONE_WORKER = 1.6
PLANES = (1, 2)
"""Of fabrics that several workers share: a plane each, or what there is."""
TURNS = 3


Nic = tuple[str, int]
"""A host's name and the plane."""


@dataclass
class Rig:
    """A fabric in partitions: its switches, what each host sends through, and where what it gets ends."""

    partitions: Partitions
    switches: list[NativeSwitch] = field(default_factory=list)
    senders: dict[Nic, TransmitPort] = field(default_factory=dict)
    sinks: list[TransmitPort] = field(default_factory=list)

    def add_sender(self, nic: Nic, engine: Engine, leaf: NativeSwitch, port: int, link: LinkSpec) -> None:
        """A host's NIC that sends to this port of a switch."""
        towards = Link(engine, delay_ps=link.delay_ps)
        towards.connect(leaf.native, port)
        self.senders[nic] = TransmitPort(engine, towards, rate_bps=link.rate_bps)

    def add_sink(self, engine: Engine) -> TransmitPort:
        """Where packets end: a queue without space counts and drops what arrives."""
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
            if near.node not in switches:
                nic = (near.node, near.port)
                rig.add_sender(nic, engines[near.node], switches[far.node], far.port, edge.link)
                continue
            link = transmit_port(switches[near.node], near.port, edge.link.rate_bps, edge.link.delay_ps)
            if far.node in switches:
                link.connect(switches[far.node].native, far.port)
            else:
                link.connect(rig.add_sink(engines[far.node]))
    program_over_p4runtime(fabric, program, switches)
    return rig


def null_rig(fabric: FabricSpec) -> Rig:
    """As many hosts, in plane 0, on as many rows of three switches that run the null program."""
    rig = Rig(Partitions(seed=1))
    document = compile_file(Path(__file__).parent / "null.p4").json_text().encode()
    hosts = fabric.hosts
    for leaf in sorted({host.nic(0).switch for host in hosts}):
        row = [NativeSwitch(rig.partitions.add(), f"{leaf} {place}") for place in range(HOPS)]
        attached = {host.name: host.nic(0) for host in hosts if host.nic(0).switch == leaf}
        rate_bps = sum(nic.link.rate_bps for nic in attached.values())
        for switch, following in zip(row, [*row[1:], None], strict=True):
            switch.load(load_program(document))
            link = transmit_port(switch, NULL_PORT, rate_bps, DELAY_PS)
            if following is None:
                link.connect(rig.add_sink(rig.partitions.add()))
            else:
                link.connect(following.native, 1)
        group = rig.partitions.add()
        for host, nic in attached.items():
            rig.add_sender((host, 0), group, row[0], nic.switch_port, nic.link)
        rig.switches += row
    return rig


def frames(fabric: FabricSpec) -> dict[Nic, bytes]:
    """What each NIC sends: an RDMA WRITE with space for INT, to the host of the same number two leaves further on."""
    hosts = fabric.hosts
    on_leaf = len(fabric.switch(hosts[0].nic(0).switch).host_ports)
    return {
        (host.name, nic.plane): write_frame(
            nic, hosts[(index + 2 * on_leaf) % len(hosts)].nic(nic.plane), index, bytes(PAYLOAD_BYTES)
        )
        for index, host in enumerate(hosts)
        for nic in host.nics
    }


@dataclass
class Runner:
    """Rigs that run side by side, each with what its hosts send, and the best that has been seen of them."""

    rigs: list[Rig]
    bursts: dict[Nic, bytes]
    workers: int = 1
    best_hops_per_s: float = 0.0

    def counts(self) -> tuple[int, int]:
        """Hops made so far, and packets that have arrived."""
        return sum(rig.hops() for rig in self.rigs), sum(rig.arrived() for rig in self.rigs)

    def round(self) -> None:
        """Send a burst from every host, and time the run until all has arrived. RuntimeError if a packet is lost."""
        hops, arrived = self.counts()
        for rig in self.rigs:
            rig.partitions.workers = self.workers
            for nic, sender in rig.senders.items():
                for _ in range(BURST_PACKETS):
                    sender.enqueue(self.bursts[nic])
        elapsed_s = self.timed_run()
        packets = sum(len(rig.senders) for rig in self.rigs) * BURST_PACKETS
        made, ended = (now - before for now, before in zip(self.counts(), (hops, arrived), strict=True))
        if (made, ended) != (HOPS * packets, packets):
            raise RuntimeError(f"{packets} packets made {made} hops, and {ended} of them arrived")
        self.best_hops_per_s = max(self.best_hops_per_s, made / elapsed_s)

    def timed_run(self) -> float:
        """Seconds until all rigs have run: of the processor's time for one worker, otherwise of the clock."""
        first, *others = (rig.partitions.run for rig in self.rigs)
        clock_s = time.perf_counter if others or self.workers > 1 else time.thread_time
        threads = [threading.Thread(target=run) for run in others]
        start_s = clock_s()
        for thread in threads:
            thread.start()
        first()
        for thread in threads:
            thread.join()
        return clock_s() - start_s


def take_turns(runners: list[Runner], rounds: int) -> list[float]:
    """The best of each, in hops/s. They take turns, so that the machine's fast moments favour none of them."""
    for _ in range(rounds):
        for runner in runners:
            runner.round()
    return [runner.best_hops_per_s for runner in runners]


def fabric_of(size: int, planes: int) -> FabricSpec:
    """So many leaves and spines in each plane, and hosts on each leaf."""
    return leaf_spine(
        planes=planes,
        leaves=size,
        spines=size,
        hosts_per_leaf=size,
        host_rate_bps=RATE_BPS,
        delay_ps=DELAY_PS,
    )


def one_worker_figures(program: Program, size: int, rounds: int, small: Runner) -> list[Figure]:
    """The rate of one core, compared with the null program's and a `small` fabric's."""
    fabric = fabric_of(size, planes=1)
    bursts = frames(fabric)
    null = Runner([null_rig(fabric)], bursts)
    if size <= LINEAR_FROM:
        rate, null_rate = take_turns([Runner([fabric_rig(fabric, program)], bursts), null], rounds)
    else:
        small.best_hops_per_s = 0.0
        measured = Runner([fabric_rig(fabric, program)], bursts)
        rate, null_rate, small_rate = take_turns([measured, null, small], rounds)
    has_goals = size <= LARGEST_WITH_GOALS
    figures = [
        Figure(endpoints(size), rate, "hops/s", goal=GOAL_HOPS_PER_S if has_goals else None),
        Figure(
            "  compared with the null program",
            null_rate,
            "hops/s",
            "null",
            rate / null_rate,
            GOAL_TIMES_NULL if has_goals else None,
        ),
    ]
    if size > LINEAR_FROM:
        compared_with = f"{LINEAR_FROM**2} endpoints"
        figures.append(
            Figure(
                "  compared with a small fabric",
                small_rate,
                "hops/s",
                compared_with,
                rate / small_rate,
                GOAL_TIMES_SMALLER,
            )
        )
    return figures


def workers_figures(program: Program, size: int, planes: int, rounds: int, workers: int) -> list[Figure]:
    """The rate of several workers, compared with one worker and with as many independent fabrics of one worker each."""
    fabric = fabric_of(size, planes)
    bursts = frames(fabric)
    rigs = [fabric_rig(fabric, program) for _ in range(workers)]
    runners = [Runner(rigs[:1], bursts), Runner(rigs[:1], bursts, workers), Runner(rigs, bursts)]
    for _ in range(TURNS):
        for runner in runners:
            take_turns([runner], rounds)
    one, several, apart = (runner.best_hops_per_s for runner in runners)
    goal = GOAL_TIMES_ONE_WORKER if workers == 2 and size > LINEAR_FROM else None
    name = f"{size * size} endpoints, {planes} plane{'s' if planes > 1 else ''}, {workers} workers"
    return [
        Figure(name, several, "hops/s", "one", several / one, goal),
        Figure(f"  {workers} fabrics at once, a worker each", apart, "hops/s", "one", apart / one),
    ]


def endpoints(size: int) -> str:
    """The name of a fabric of this size."""
    return f"{size * size} endpoints, {2 * size} switches"


def measure(sizes: list[int], rounds: int, workers: int) -> list[Figure]:
    """All figures; those of LINEAR_FROM are what larger fabrics are compared with."""
    with tempfile.TemporaryDirectory() as folder:
        program = compiled_fabric(Path(folder))
        small = fabric_of(LINEAR_FROM, planes=1)
        small_runner = Runner([fabric_rig(small, program)], frames(small))
        figures = [figure for size in sizes for figure in one_worker_figures(program, size, rounds, small_runner)]
        if workers > 1:
            for size in (size for size in sizes if size <= LARGEST_WITH_GOALS):
                for planes in PLANES:
                    figures += workers_figures(program, size, planes, rounds, workers)
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

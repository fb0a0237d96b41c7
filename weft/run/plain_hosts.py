"""Programs on hosts' IP stacks as tasks of a fabric: pings, traceroutes, UDP flows, replays, scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from weft.errors import EnvironmentLacksError
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_S
from weft.results.kinds import ResultKind
from weft.results.latencies import Latencies, latencies_of
from weft.results.plain_hosts import PINGS, REPLAYS, ROUTES, SCRIPTS, UDP_FLOWS
from weft.results.plain_hosts_model import (
    Hop,
    PingResult,
    PrintedLine,
    ReplayResult,
    RouteResult,
    ScriptResult,
    UdpResult,
)
from weft.run.task import Ended, Task
from weft.topologies import FabricSpec
from weft.traffic.answers import ApplicationRecords
from weft.traffic.class_reference import short_reference
from weft.traffic.extensions import ClassSpec
from weft.traffic.mapped_data import RankBuffer
from weft.traffic.programs import (
    EchoRecord,
    Ping,
    Program,
    Replay,
    ReplayRecord,
    Script,
    ScriptRecord,
    UdpLoad,
    UdpReceived,
    UdpReceiver,
    UdpSender,
    UdpSent,
)
from weft.traffic.programs.scripts import HostFacts

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

R = TypeVar("R")
Pair = tuple[str, str]
REAL_CLOCK_HAS_KERNELS = (
    "hosts of the real clock have their kernel's IP: use ping, iperf3 or Scapy on them in `weft lab`, or "
    "`clock: virtual`"
)
_BITS = 8
_HOP_INTERVAL_PS = 1_000_000
"""Time between probes of a route, so that they do not queue behind each other."""


@dataclass(frozen=True)
class _Found:
    """Records of programs, in their order, and start and end of their run."""

    records: Sequence[Any]
    started_ps: int
    finished_ps: int


def _task(
    fabric: Fabric,
    name: str,
    kind: ResultKind[Any],
    programs: Sequence[Program],
    results: Callable[[_Found], list[R]],
) -> Task[list[R]]:
    """Return programs as a task that records each of `results` with its kind."""
    if fabric.options.clock == "real":
        raise EnvironmentLacksError(f"{REAL_CLOCK_HAS_KERNELS}", place=name)

    def prepare(_buffers: Sequence[RankBuffer], _results: list[Path], _jobs: Sequence[int]) -> int:
        return fabric.hosts.prepare_applications(programs)

    def result(ended: Sequence[Ended]) -> list[R]:
        (run,) = ended
        answers = [each for each in run.answers if isinstance(each, ApplicationRecords)]
        found = _Found(_in_order(programs, answers), min(run.outcome.started_ps), max(run.outcome.finished_ps))
        made = results(found)
        for each in made:
            fabric.add_result(kind, each)
        return made

    return Task(name, None, prepare, result, asks="applications")


def _in_order(programs: Sequence[Program], answers: Sequence[ApplicationRecords]) -> list[Any]:
    """Return the programs' records in order, given each rank's records in order of the ranks' first programs."""
    ranks = list(dict.fromkeys(program.rank for program in programs))
    left: Mapping[int, Iterator[Any]] = {
        rank: iter(answer.records) for rank, answer in zip(ranks, answers, strict=True)
    }
    return [next(left[program.rank]) for program in programs]


def _address(topology: FabricSpec, host: str, ip_version: int, nic: int = 0) -> str:
    found = topology.host(host).nics[nic]
    return str((found.ipv4 if ip_version == 4 else found.ipv6).ip)


def _latencies(values_ps: Sequence[int] | Any) -> Latencies | None:
    values = np.asarray(values_ps, np.int64)
    return latencies_of(values) if values.size else None


@dataclass(frozen=True)
class PingPlan:
    """Parameters of pings: number, interval, timeout, size and DSCP."""

    count: int
    interval_ps: int
    timeout_ps: int
    data_bytes: int
    dscp: int


def ping_task(fabric: Fabric, pairs: Sequence[Pair], plan: PingPlan) -> Task[list[PingResult]]:
    """Return a task of concurrent pings between pairs of hosts."""
    topology, version = fabric.topology, fabric.options.ip_version
    programs = [
        Ping(
            topology.host(source).index,
            destination=_address(topology, destination, version),
            count=plan.count,
            interval_ps=plan.interval_ps,
            timeout_ps=plan.timeout_ps,
            data_bytes=plan.data_bytes,
            dscp=plan.dscp,
        )
        for source, destination in pairs
    ]

    def result(pair: Pair, record: EchoRecord) -> PingResult:
        answered = [
            time for time, outcome in zip(record.round_trip_ps, record.outcome, strict=True) if outcome == "answered"
        ]
        unreachable = sum(outcome in ("unreachable", "time_exceeded") for outcome in record.outcome)
        not_sent = record.outcome.count("not_sent")
        return PingResult(
            *pair,
            sent=len(record.outcome) - not_sent,
            answered=len(answered),
            unreachable=unreachable,
            duplicates=record.duplicates,
            round_trip_ps=_latencies(answered),
            not_sent=not_sent,
        )

    return _task(
        fabric,
        f"pings of {counted(len(pairs), 'pair')} of hosts",
        PINGS,
        programs,
        lambda found: [result(pair, record) for pair, record in zip(pairs, found.records, strict=True)],
    )


def route_task(
    fabric: Fabric, pairs: Sequence[Pair], most_hops: int, probes: int, timeout_ps: int
) -> Task[list[RouteResult]]:
    """Return a task that finds the hops between pairs of hosts by echo requests with each hop limit."""
    topology, version = fabric.topology, fabric.options.ip_version
    hop_limits = range(1, most_hops + 1)
    programs = [
        Ping(
            topology.host(source).index,
            destination=_address(topology, destination, version),
            count=probes,
            interval_ps=_HOP_INTERVAL_PS,
            timeout_ps=timeout_ps,
            hop_limit=hop_limit,
        )
        for source, destination in pairs
        for hop_limit in hop_limits
    ]

    def results(found: _Found) -> list[RouteResult]:
        made = []
        for number, (source, destination) in enumerate(pairs):
            records = found.records[number * most_hops : (number + 1) * most_hops]
            hops, reached = [], False
            for hop_limit, record in zip(hop_limits, cast("Sequence[EchoRecord]", records), strict=True):
                responders = tuple(dict.fromkeys(filter(None, record.responder)))
                hops.append(Hop(hop_limit, responders, tuple(filter(None, record.round_trip_ps))))
                if reached := "answered" in record.outcome:
                    break
            made.append(RouteResult(source, destination, reached, tuple(hops)))
        return made

    return _task(fabric, f"routes of {counted(len(pairs), 'pair')} of hosts", ROUTES, programs, results)


def udp_task(fabric: Fabric, pairs: Sequence[Pair], first_port: int, load: UdpLoad) -> Task[list[UdpResult]]:
    """Return a task with a UDP source and sink for each pair of hosts; sinks have ports from `first_port` on."""
    topology, version = fabric.topology, fabric.options.ip_version
    programs: list[Program] = []
    for port, (source, destination) in enumerate(pairs, first_port):
        to, stream = _address(topology, destination, version), f"udp {source} {destination} {port}"
        programs += [
            UdpReceiver(topology.host(destination).index, _address(topology, source, version), port),
            UdpSender(topology.host(source).index, to, port, stream, load),
        ]

    def results(found: _Found) -> list[UdpResult]:
        received, sent = found.records[::2], found.records[1::2]
        return [
            _udp_result(pair, of_source, of_sink, found.started_ps)
            for pair, of_source, of_sink in zip(pairs, sent, received, strict=True)
        ]

    return _task(fabric, f"UDP of {counted(len(pairs), 'pair')} of hosts", UDP_FLOWS, programs, results)


def _udp_result(pair: Pair, sent: UdpSent, received: UdpReceived, started_ps: int) -> UdpResult:
    counts = received.counts
    time_ps = received.last_ps - started_ps
    return UdpResult(
        *pair,
        sent=sent.packets - sent.not_sent_packets,
        not_sent=sent.not_sent_packets,
        received=counts["packets"],
        duplicates=counts["duplicate_packets"],
        reordered=counts["late_packets"],
        marked=counts["marked_packets"],
        goodput_bps=counts["ip_bytes"] * _BITS * PS_PER_S / time_ps if counts["packets"] else 0.0,
        delay_ps=_latencies(received.delays_ps),
        jitter_ps=_latencies(np.abs(np.diff(received.delays_ps))),
    )


def replay_task(
    fabric: Fabric, file: str, frames_of: Mapping[str, tuple[tuple[int, bytes], ...]], nic: int
) -> Task[list[ReplayResult]]:
    """Return a task of hosts that send frames of captures, each with its time after the start."""
    fabric.lab.allow_any_packets()
    programs = [Replay(fabric.topology.host(host).index, nic, frames) for host, frames in frames_of.items()]

    def result(host: str, record: ReplayRecord) -> ReplayResult:
        frames = frames_of[host]
        time_ps = frames[-1][0] - frames[0][0]
        return ReplayResult(host, file, record.packets, record.sent_bytes, record.not_sent_packets, time_ps)

    return _task(
        fabric,
        f"replay of {file}",
        REPLAYS,
        programs,
        lambda found: [result(host, record) for host, record in zip(frames_of, found.records, strict=True)],
    )


def facts_of_hosts(topology: FabricSpec) -> dict[str, HostFacts]:
    """Return the facts given to scripted hosts, by name; each host has access to all."""
    peers: dict[str, HostFacts] = {}
    for host in topology.hosts:
        nic = host.nics[0]
        peers[host.name] = HostFacts(host.name, nic.mac, str(nic.ipv4.ip), str(nic.ipv6.ip), nic.gateway_mac, peers)
    return peers


def script_task(fabric: Fabric, scripts: Mapping[str, ClassSpec], duration_ps: int) -> Task[list[ScriptResult]]:
    """Return a task of scripted hosts, by their names."""
    fabric.lab.allow_any_packets()
    facts = facts_of_hosts(fabric.topology)
    programs = [
        Script(fabric.topology.host(host).index, spec, facts[host], duration_ps) for host, spec in scripts.items()
    ]

    def result(host: str, record: ScriptRecord) -> ScriptResult:
        return ScriptResult(
            host,
            short_reference(scripts[host].reference),
            record.sent_frames,
            record.not_sent_frames,
            record.seen_frames,
            record.reports,
            tuple(PrintedLine(time_ps, text) for time_ps, text in record.lines),
        )

    return _task(
        fabric,
        f"scripts of {counted(len(scripts), 'host')}",
        SCRIPTS,
        programs,
        lambda found: [result(host, record) for host, record in zip(scripts, found.records, strict=True)],
    )

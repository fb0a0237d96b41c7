"""The same flows over the same fabric and P4 program: by Weft's TCP in virtual time, by Linux's in a lab of Mininet."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.clocks.real.lab import MininetLab
from weft.errors import CheckFailedError
from weft.quantities.units import NS_PER_S, PS_PER_S
from weft.quantities.yaml_files import read_yaml
from weft.results.tcp import TCP
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.run.traffic_kinds.tcp import TcpTraffic
from weft.scenario import parse_scenario

if TYPE_CHECKING:
    from weft.traffic.commands.tcp import TcpEnd

SCENARIO = Path(__file__).with_name("tcp_linux.yaml")
PROGRAM = Path(__file__).with_name("kernel_tcp_host.py")
KERNELS_NAMES = {"newreno": "reno"}
"""Of congestion controls, where they differ."""
FIRST_PORT = 6000
WARM_UP_S = 2.0
"""Left out of queues and windows: slow start and the second flow's arrival."""
_LEAD_S = 1.0
_PATIENCE_S = 60


@dataclass(frozen=True)
class Way:
    """A congestion control, with ECN or without."""

    control: str
    ecn: bool

    def __str__(self) -> str:
        return f"{self.control}{' with ECN' if self.ecn else ''}"


@dataclass(frozen=True)
class Sender:
    """What became of a flow. `windows`: (seconds since the first flow's start, congestion window in bytes)."""

    acknowledged_bytes: int
    took_s: float
    sent_segments: int
    retransmitted_segments: int
    timeouts: int
    fast_recoveries: int
    windows: Sequence[tuple[float, int]]

    @property
    def goodput_bps(self) -> float:
        """Of what was acknowledged."""
        return 8 * self.acknowledged_bytes / self.took_s

    @property
    def mean_window_bytes(self) -> float:
        """After the warm-up."""
        return statistics.mean(window for time_s, window in self.windows if time_s >= WARM_UP_S)


@dataclass(frozen=True)
class Found:
    """A run. `queue`: (seconds since the first flow's start, bytes at the bottleneck)."""

    senders: Sequence[Sender]
    queue: Sequence[tuple[float, int]]
    marked_packets: int

    def queue_bytes(self, share: float) -> int:
        """Return the quantile of the depths after the warm-up, while both flows sent."""
        end_s = min(sender.windows[-1][0] for sender in self.senders)
        depths = sorted(depth for time_s, depth in self.queue if WARM_UP_S <= time_s < end_s)
        return depths[int(share * (len(depths) - 1))]

    @property
    def goodput_bps(self) -> float:
        """Of both flows together, each over its own time."""
        return sum(sender.goodput_bps for sender in self.senders)

    @property
    def larger_share(self) -> float:
        """Of the flow that has more."""
        return max(sender.goodput_bps for sender in self.senders) / self.goodput_bps

    def total(self, name: str) -> int:
        """Return the sum of a count over the flows."""
        return sum(getattr(sender, name) for sender in self.senders)


def scenario(ways: Sequence[Way], duration_s: float | None = None) -> dict[str, Any]:
    """Return the scenario with an item for each way; flows end after `duration_s`, if given."""
    document: dict[str, Any] = read_yaml(SCENARIO.read_text(encoding="utf-8"), str(SCENARIO))
    (item,) = document["traffic"]
    if duration_s is not None:
        for flow in item["tcp"]:
            start_s = 0.5 if "start" in flow else 0.0
            flow["duration"] = f"{round((duration_s - start_s) * 1000)}ms"
    document["traffic"] = [{**item, "congestion_control": way.control, "ecn": way.ecn} for way in ways]
    return document


def ours(ways: Sequence[Way], duration_s: float | None = None) -> list[Found]:
    """Run the scenario in virtual time."""
    result = run_scenario(parse_scenario(scenario(ways, duration_s)))
    queues = result.observations.tables["queues"]
    depths: dict[int, int] = {}
    for time_ps, depth in zip(queues["time_ps"], queues["queue_bytes"], strict=True):
        depths[int(time_ps)] = depths.get(int(time_ps), 0) + int(depth)
    found = []
    for phase, flows in zip(result.phases, result.of(TCP), strict=True):
        first_ps = flows.flows[0].start_ps
        windows: dict[int, list[tuple[float, int]]] = {number: [] for number in range(len(flows.flows))}
        columns = (flows.windows.flow, flows.windows.time_ps, flows.windows.window_bytes)
        for number, time_ps, window in zip(*columns, strict=True):
            windows[number].append(((time_ps - first_ps) / PS_PER_S, window))
        senders = [
            Sender(
                acknowledged_bytes=each.bytes,
                took_s=each.completion_ps / PS_PER_S,
                sent_segments=each.sent_segments,
                retransmitted_segments=each.retransmitted_segments,
                timeouts=each.timeouts,
                fast_recoveries=each.fast_recoveries,
                windows=windows[number],
            )
            for number, each in enumerate(flows.flows)
        ]
        marked = round(sum(each.marked_share * each.sent_segments for each in flows.flows))
        queue = [
            ((time_ps - phase.start_ps) / PS_PER_S, depth)
            for time_ps, depth in sorted(depths.items())
            if phase.start_ps <= time_ps <= phase.end_ps
        ]
        found.append(Found(senders, queue, marked))
    return found


def kernels_controls() -> set[str]:
    """Return those that this kernel has."""
    text = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii")
    return set(text.split())


def linux(ways: Sequence[Way], duration_s: float | None = None) -> list[Found]:
    """Run the flows by the kernel's TCP of a lab's hosts. Needs root and Mininet.

    Raises CheckFailedError if a host's program fails, or does not end.
    """
    document = scenario(ways, duration_s)
    spec = run_spec(parse_scenario({**document, "clock": "real", "traffic": [], "observe": {}}))
    items = [item for item in parse_scenario(document).traffic if isinstance(item, TcpTraffic)]
    with MininetLab(spec.fabric, spec.options) as lab:
        for host in spec.fabric.hosts:
            for setting in ("tcp_no_metrics_save=1", "tcp_slow_start_after_idle=1"):
                _run(lab, host.name, f"net.ipv4.{setting}")
        return [_linux_item(lab, item) for item in items]


def _run(lab: MininetLab, host: str, setting: str) -> None:
    if lab.network.popen(host, ["sysctl", "-qw", setting]).wait(_PATIENCE_S):
        raise CheckFailedError(f"{host}: sysctl {setting} failed")


def _linux_item(lab: MininetLab, item: TcpTraffic) -> Found:
    for host in lab.fabric.hosts:
        _run(lab, host.name, f"net.ipv4.tcp_ecn={1 if item.ecn else 2}")
    assert lab.daemon is not None
    before = [_kernels_counters(lab, host.name) for host in lab.fabric.hosts]
    (port_name,) = scenario([])["observe"]["queues"]
    switch, port = port_name.split(":")
    flows = list(item.flows(lab.fabric))
    lab.reset_switch_stats()
    with contextlib.ExitStack() as stack:
        for number, flow in enumerate(flows):
            receiver = stack.enter_context(
                _program(lab, lab.fabric.hosts[flow.destination].name, "receive", FIRST_PORT + number)
            )
            _line(receiver)
        begin_ns = time.monotonic_ns() + round(_LEAD_S * NS_PER_S)
        senders = [
            stack.enter_context(_sender(lab, flow.source, flow.destination, flow.end, number, begin_ns, item))
            for number, flow in enumerate(flows)
        ]
        queue = []
        while any(sender.poll() is None for sender in senders):
            now_s = (time.monotonic_ns() - begin_ns) / NS_PER_S
            stats = lab.daemon.stats()["switches"][switch]["ports"][port]
            queue.append((now_s, stats["transmit"]["queue_depth_bytes"]))
            time.sleep(item.sample / PS_PER_S)
        results = [_line(sender) for sender in senders]
    counted = [
        _kernels_counters(lab, host.name) - earlier for host, earlier in zip(lab.fabric.hosts, before, strict=True)
    ]
    found = [_of_kernel(each, counted[flow.source], begin_ns) for each, flow in zip(results, flows, strict=True)]
    return Found(found, queue, sum(each["InCEPkts"] for each in counted))


def _kernels_counters(lab: MininetLab, host: str) -> Counter[str]:
    """Return those of a host's namespace, by their names in /proc/net/netstat."""
    process = lab.network.popen(host, ["cat", "/proc/net/netstat"], stdout=subprocess.PIPE)
    lines = process.communicate(timeout=_PATIENCE_S)[0].splitlines()
    counters: Counter[str] = Counter()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        counters.update(dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True)))
    return counters


def _sender(
    lab: MininetLab, source: int, destination: int, end: TcpEnd, number: int, begin_ns: int, item: TcpTraffic
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    hosts = lab.fabric.hosts
    return _program(
        lab,
        hosts[source].name,
        "send",
        hosts[destination].nics[0].ipv4.ip,
        FIRST_PORT + number,
        KERNELS_NAMES.get(end.congestion_control, end.congestion_control),
        end.dscp,
        begin_ns + end.start_ps // 1000,
        end.duration_ps // 1000,
        item.sample // 1000,
    )


@contextlib.contextmanager
def _program(lab: MininetLab, host: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start the hosts' program on one; it ends with the block, whatever happens."""
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    process = lab.network.popen(host, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next line of a program as JSON; CheckFailedError if it has none."""
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    if not line:
        raise CheckFailedError(f"{PROGRAM.name}: {process.stderr.read().strip()[-2000:]}")
    found: dict[str, Any] = json.loads(line)
    return found


def _of_kernel(found: dict[str, Any], counted: Counter[str], begin_ns: int) -> Sender:
    return Sender(
        acknowledged_bytes=found["acknowledged_bytes"],
        took_s=found["took_ns"] / NS_PER_S,
        sent_segments=found["sent_segments"],
        retransmitted_segments=found["retransmitted_segments"],
        timeouts=counted["TCPTimeouts"],
        fast_recoveries=counted["TCPSackRecovery"] + counted["TCPRenoRecovery"],
        windows=[((now_ns - begin_ns) / NS_PER_S, window) for now_ns, window, _ in found["samples"]],
    )

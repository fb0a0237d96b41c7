"""HPCC's simulator on ns-3 (github.com/alibaba-edu/High-Precision-Congestion-Control, simulation/scratch/third.cc).

Formats are those that third.cc reads and writes, parameters those of run.py. Its topology and its list of flows are
formats of Weft's, too (`hpcc`, `hpcc_flows`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from peers.peer import Peer, UnfitWorkError, require_all_ended
from peers.work import Work
from weft.clocks.marking import ecn_settings
from weft.quantities.arrays import Integers
from weft.quantities.traffic_classes import DATA_CLASS
from weft.quantities.units import PS_PER_NS, PS_PER_S, PS_PER_US

BASE_S = 2
"""Flows start from here on, as those of its traffic generator do."""
PORT, FIRST_SOURCE_PORT = 100, 10000
"""Destination port of all flows; source port of the first one of a pair of hosts, which the others count up from."""
_MIB = 1 << 20
_MOST_BYTES = (1 << 32) - 1
_INT_UNIT_BPS = 25_000_000_000
_TOPOLOGY, _FLOWS, _CONFIG, _TRACE = "topology.txt", "flows.txt", "config.txt", "trace.txt"
_ENDED, _PAUSES = "fct.txt", "pfc.txt"
_OUTPUTS = ("TRACE_OUTPUT_FILE trace.tr", f"FCT_OUTPUT_FILE {_ENDED}", f"PFC_OUTPUT_FILE {_PAUSES}")
_ENDED_LINE = re.compile(r"([0-9a-f]{8}) ([0-9a-f]{8}) (\d+) \d+ (\d+) \d+ (\d+) \d+")


class Ns3Hpcc(Peer):
    """ns-3 with the hosts and switches of HPCC's authors."""

    name = "ns3-hpcc"
    title = "ns-3 (HPCC)"
    variable = "WEFT_NS3_HPCC"
    source = (
        "github.com/alibaba-edu/High-Precision-Congestion-Control: `./waf configure -d optimized` and `./waf build` in "
        "its folder simulation, with Python 2; the variable names simulation/build/scratch/third or the clone"
    )

    def found(self, name: str) -> Path | None:
        """Return the program, also for the folder of the clone."""
        folder = Path(name)
        return super().found(str(folder / "simulation/build/scratch/third") if folder.is_dir() else name)

    def environment(self, program: Path) -> Mapping[str, str]:
        """Return where the program finds its libraries, which are a folder up from it."""
        return {"LD_LIBRARY_PATH": str(program.parent.parent)}

    def check(self, work: Work) -> None:
        """Refuse what third.cc would read as something else, or cannot be told."""
        fabric, options = work.fabric, work.spec.options
        _require(fabric.nics_per_host == 1, work, "hosts have several NICs", "one plane")
        _require(options.transport.protocol == "rc", work, f"protocol {options.transport.protocol}", "rc")
        interval = options.transport.settings().ack_interval_in_force
        _require(interval == 1, work, f"an acknowledgement for {interval} packets", "ack_interval: 1")
        _require(DATA_CLASS in options.pfc.classes, work, "switches that drop", f"pfc with class {DATA_CLASS}")
        capacity = options.buffer.capacity
        whole = capacity is not None and capacity % _MIB == 0
        _require(whole, work, f"switch memory {capacity}", "buffer.capacity, in whole MiB")
        pairs = {frozenset((link.a.node, link.b.node)) for link in fabric.links}
        _require(len(pairs) == len(fabric.links), work, "parallel links", "one link between two nodes")
        whole = all(link.link.delay_ps % PS_PER_NS == 0 for link in fabric.links)
        _require(whole, work, "a delay of part of a nanosecond", "whole nanoseconds")
        for flow in work.flows:
            fits = flow.start_ps % PS_PER_NS == 0 and flow.size_bytes <= _MOST_BYTES and flow.queue_pairs == 1
            _require(fits, work, f"{flow}", f"starts in whole nanoseconds, up to {_MOST_BYTES:,} B, one queue pair")
        _control(work)
        _marks(work)

    def write(self, work: Work, folder: Path) -> Sequence[str]:
        """Write topology, flows, parameters and an empty list of traced nodes."""
        files = {
            _TOPOLOGY: topology(work),
            _FLOWS: flow_list(work),
            _CONFIG: configuration(work),
            _TRACE: "0\n",
        }
        for name, text in files.items():
            (folder / name).write_text(text, encoding="ascii")
        return [_CONFIG]

    def read(self, work: Work, folder: Path, printed: str) -> tuple[int, Integers | None]:
        """Read fct.txt: a line for each flow when its last acknowledgement arrives, in nanoseconds."""
        rows = [_ENDED_LINE.fullmatch(line) for line in (folder / _ENDED).read_text(encoding="ascii").splitlines()]
        if None in rows:
            raise RuntimeError(f"{work.title}: line {rows.index(None) + 1} of {_ENDED} is no end of a flow")
        ended = {
            (_host(row[1]), _host(row[2]), int(row[3]), int(row[4])): int(row[5]) for row in rows if row is not None
        }
        require_all_ended(work, self.title, len(ended))
        took_ns = [
            ended[flow.source, flow.destination, port, flow.size_bytes]
            for flow, port in zip(work.flows, _source_ports(work), strict=True)
        ]
        completion_ps = np.array(took_ns, np.int64) * PS_PER_NS
        return int((work.columns["start_ps"] + completion_ps).max()), completion_ps

    @staticmethod
    def pauses(folder: Path) -> int:
        """Return how many pause frames were sent in a run."""
        lines = (folder / _PAUSES).read_text(encoding="ascii").splitlines()
        return sum(line.split()[4] == "0" for line in lines)


def _require(holds: bool, work: Work, problem: str, valid: str) -> None:
    if not holds:
        raise UnfitWorkError(f"ns-3 (HPCC) has no place for {problem}", place=work.title, valid=valid)


def _host(address: str) -> int:
    """Return the number of the host with an address (`node_id_to_ip` of third.cc)."""
    return int(address, 16) >> 8 & 0xFFFF


def _source_ports(work: Work) -> Iterator[int]:
    following: defaultdict[tuple[int, int], int] = defaultdict(lambda: FIRST_SOURCE_PORT)
    for flow in work.flows:
        yield following[flow.source, flow.destination]
        following[flow.source, flow.destination] += 1


def topology(work: Work) -> str:
    """Return the topology: counts, numbers of the switches, a line for each link. Hosts come first."""
    fabric = work.fabric
    names = [*(host.name for host in fabric.hosts), *(switch.name for switch in fabric.switches)]
    number = {name: place for place, name in enumerate(names)}
    links = [
        f"{number[each.a.node]} {number[each.b.node]} {each.link.rate_bps}b/s {each.link.delay_ps // PS_PER_NS}ns 0"
        for each in fabric.links
    ]
    switches = " ".join(str(number[each.name]) for each in fabric.switches)
    return "\n".join([f"{len(names)} {len(fabric.switches)} {len(links)}", switches, *links, ""])


def flow_list(work: Work) -> str:
    """Return the flows: their number, then source, destination, priority, port, bytes and start in seconds."""
    rows = (
        f"{each.source} {each.destination} {DATA_CLASS} {PORT} {each.size_bytes} "
        f"{BASE_S + each.start_ps // PS_PER_S}.{each.start_ps % PS_PER_S // PS_PER_NS:09d}"
        for each in work.flows
    )
    return "\n".join([str(len(work.flows)), *rows, ""])


def configuration(work: Work) -> str:
    """Return the parameters, one a line.

    Queues are not sampled: Weft's are not in a run without `observe`, and every sample of 100 ns goes over all ports.
    """
    options = work.spec.options
    assert options.buffer.capacity is not None, "checked"
    stop_ns = work.stop_ps // PS_PER_NS + BASE_S * 10**9
    lines = [
        "ENABLE_QCN 1",
        "USE_DYNAMIC_PFC_THRESHOLD 1",
        f"PACKET_PAYLOAD_SIZE {options.mtu_bytes}",
        f"TOPOLOGY_FILE {_TOPOLOGY}",
        f"FLOW_FILE {_FLOWS}",
        f"TRACE_FILE {_TRACE}",
        *_OUTPUTS,
        f"SIMULATOR_STOP_TIME {stop_ns / 1e9:.9f}",
        "ERROR_RATE_PER_LINK 0",
        "L2_CHUNK_SIZE 4000",
        "L2_ACK_INTERVAL 1",
        "L2_BACK_TO_ZERO 0",
        "GLOBAL_T 1",
        "MULTI_RATE 0",
        "SAMPLE_FEEDBACK 0",
        "RATE_BOUND 1",
        "LINK_DOWN 0 0 0",
        "ENABLE_TRACE 0",
        *(f"{key} {value}" for key, value in _control(work).items()),
        *_marks(work),
        f"BUFFER_SIZE {options.buffer.capacity // _MIB}",
        "QLEN_MON_FILE queues.txt",
        f"QLEN_MON_START {stop_ns + 1}",
        f"QLEN_MON_END {stop_ns + 1}",
    ]
    return "\n".join([*lines, ""])


def _marks(work: Work) -> list[str]:
    """Return the marking thresholds in kB for each rate of a switch's port."""
    settings = ecn_settings(work.fabric, work.spec.options)
    rates_bps = sorted({port.link.rate_bps for switch in work.fabric.switches for port in switch.ports})
    profiles = {rate_bps: settings.profiles_at(rate_bps)[DATA_CLASS] for rate_bps in rates_bps}
    for profile in profiles.values():
        whole = profile.kmin_bytes % 1000 == 0 and profile.kmax_bytes % 1000 == 0
        _require(whole, work, f"marks from {profile.kmin_bytes} B to {profile.kmax_bytes} B", "whole kB")
    columns: Mapping[str, Mapping[int, float]] = {
        "KMAX_MAP": {rate_bps: profile.kmax_bytes // 1000 for rate_bps, profile in profiles.items()},
        "KMIN_MAP": {rate_bps: profile.kmin_bytes // 1000 for rate_bps, profile in profiles.items()},
        "PMAX_MAP": {rate_bps: profile.pmax for rate_bps, profile in profiles.items()},
    }
    return [
        f"{key} {len(values)} {' '.join(f'{rate_bps} {value}' for rate_bps, value in values.items())}"
        for key, values in columns.items()
    ]


def _control(work: Work) -> dict[str, object]:
    """Return the parameters of the congestion control. Raises UnfitWorkError for one that third.cc lacks."""
    name = work.spec.options.transport.congestion_control
    _require(name in _CONTROLS, work, f"congestion control {name}", ", ".join(_CONTROLS))
    return {**_UNUSED, **_CONTROLS[name](work, work.control_parameters)}


_UNUSED: Mapping[str, object] = {
    "ALPHA_RESUME_INTERVAL": 1,
    "RATE_DECREASE_INTERVAL": 4,
    "CLAMP_TARGET_RATE": 0,
    "RP_TIMER": 300,
    "EWMA_GAIN": 0.00390625,
    "FAST_RECOVERY_TIMES": 1,
    "RATE_HAI": "1b/s",
    "DCTCP_RATE_AI": "1b/s",
    "U_TARGET": 0.95,
    "MI_THRESH": 0,
    "INT_MULTI": 1,
}
"""Values of run.py for parameters of the other congestion controls."""


def _dcqcn(work: Work, parameters: Mapping[str, float]) -> dict[str, object]:
    """DCQCN as adapters have it: cuts by a clock, stages by a timer alone, no window."""
    by_clock = parameters["decrease_interval_ps"] > 0 and parameters["byte_counter_bytes"] == 0
    _require(by_clock, work, "DCQCN that cuts at every CNP or counts bytes", "a preset as hpcc-comparison")
    apart_ps = work.spec.options.transport.settings().cnp_interval_in_force
    _require(apart_ps == 0, work, f"CNPs {apart_ps} ps apart", "cnp_interval: 0, one for each mark")
    times_ps = {
        name: round(parameters[f"{name}_ps"]) for name in ("alpha_timer", "decrease_interval", "increase_timer")
    }
    whole = all(time_ps % PS_PER_US == 0 for time_ps in times_ps.values())
    _require(whole, work, f"timers of {times_ps}", "whole microseconds")
    return {
        "CC_MODE": 1,
        "ALPHA_RESUME_INTERVAL": times_ps["alpha_timer"] // PS_PER_US,
        "RATE_DECREASE_INTERVAL": times_ps["decrease_interval"] // PS_PER_US,
        "RP_TIMER": times_ps["increase_timer"] // PS_PER_US,
        "CLAMP_TARGET_RATE": round(parameters["clamp_target_rate"]),
        "EWMA_GAIN": parameters["gain"],
        "FAST_RECOVERY_TIMES": round(parameters["fast_recovery_stages"]),
        "RATE_AI": _rate(parameters["additive_increase_bps"]),
        "RATE_HAI": _rate(parameters["hyper_increase_bps"]),
        "MIN_RATE": _rate(parameters["min_rate_bps"]),
        "HAS_WIN": 0,
        "VAR_WIN": 0,
        "FAST_REACT": 0,
        "ACK_HIGH_PRIO": 1,
    }


def _hpcc(work: Work, parameters: Mapping[str, float]) -> dict[str, object]:
    """HPCC: the increase of a window in a round trip is that of a rate here."""
    host_bps = work.fabric.hosts[0].nics[0].link.rate_bps
    increase_bps = parameters["additive_increase_bytes"] * 8 * PS_PER_S / parameters["round_trip_ps"]
    return {
        "CC_MODE": 3,
        "U_TARGET": parameters["target_utilisation"],
        "MI_THRESH": round(parameters["max_stage"]),
        "INT_MULTI": max(1, host_bps // _INT_UNIT_BPS),
        "RATE_AI": _rate(increase_bps),
        "MIN_RATE": _rate(parameters["min_rate_bps"]),
        "HAS_WIN": 1,
        "VAR_WIN": 1,
        "FAST_REACT": 1,
        "ACK_HIGH_PRIO": 0,
    }


_CONTROLS = {"dcqcn": _dcqcn, "hpcc": _hpcc}


def _rate(rate_bps: float) -> str:
    return f"{round(rate_bps)}b/s"


KIND = Ns3Hpcc()

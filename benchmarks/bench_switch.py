"""Frames per second veth to veth under the real clock: `weft switch` beside a bare C++ forwarder and BMv2.

    sudo .venv/bin/python benchmarks/bench_switch.py [--bytes 128 1024] [--seconds 1] [--json] [--realtime]

RoCEv2 frames of 64 flows, INT on, go through fabric.p4 with the controller's entries. Sender and switch get a core
each, for everything that the switch's process does; the load is stepped up, and the figure is the highest rate
that arrives with under 1 % loss. The bare forwarder takes frames from the same mapped receive ring and gives them
to sendmmsg, with nothing in between; "engine" is the engine's sockets and port without a program. BMv2 runs the
same JSON with the same entries, where simple_switch_grpc is on PATH; a small router (router.p4) shows both with a
light program. Leaf-spine-leaf: three switches in one process
with internal links, beside three BMv2 processes on one core. Overload is everything that the sender can send.
Needs root (a network namespace of its own) and a C++ compiler.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from fabric_setup import compiled_fabric, roce_frames
from figures import Figure, argument_parser, report
from load import TRIES, UNLIMITED, Load, build_forwarder
from targets import bmv2_switches, engine_forwarder, forwarder, has_bmv2, router, weft_daemon, weft_switch
from wires import enter_own_network, veth_pairs

from weft.scenario.program import Program, compile_program
from weft.topologies import FabricSpec, leaf_spine

ONE_SWITCH = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
THREE_SWITCHES = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
ROUTER_P4 = Path(__file__).parent / "router.p4"
GOAL_OF_BARE = 0.7
GOAL_OF_BMV2 = 5
GOAL_OF_BMV2_PATH = 10
GOAL_PLATEAU = 0.9


@dataclass(frozen=True)
class Bench:
    """What all measurements share."""

    binary: str
    program: Program
    folder: Path
    seconds: float
    realtime: bool

    def load(self, fabric: FabricSpec, size_bytes: int, *, telemetry: bool = True) -> Load:
        """From the fabric's first host to its last."""
        source, sink = fabric.hosts[0], fabric.hosts[-1]
        frames = roce_frames(fabric, source.name, sink.name, size_bytes, telemetry=telemetry)
        return Load(
            self.binary,
            source.nic(0).interface,
            sink.nic(0).interface,
            frames,
            self.seconds,
            self.realtime,
        )


@dataclass(frozen=True)
class Rates:
    """Of one target, frames per second."""

    highest: float
    overloaded: float


def measured(target: AbstractContextManager[object], load: Load) -> Rates:
    """The target's rates."""
    with target:
        highest = load.highest_rate()
        return Rates(highest, max(load.offer(UNLIMITED).rate for _ in range(TRIES)))


def one_switch(bench: Bench, size_bytes: int) -> Iterator[Figure]:
    """Figures of one switch."""
    load = bench.load(ONE_SWITCH, size_bytes)
    realtime = bench.realtime
    receiving, sending = (port.interface for port in ONE_SWITCH.switches[0].ports)
    name = f"{size_bytes} B"
    bare = measured(forwarder(bench.binary, "forward", receiving, sending, realtime=realtime), load)
    yield Figure(f"{name}, bare forwarder", bare.highest, "frames/s")
    engine = measured(forwarder(*engine_forwarder(receiving, sending), realtime=realtime), load)
    yield _beside(f"{name}, engine", engine.highest, "bare", bare.highest)
    weft = measured(weft_switch(ONE_SWITCH, bench.program, realtime=realtime), load)
    yield _beside(f"{name}, weft switch", weft.highest, "bare", bare.highest, GOAL_OF_BARE)
    yield _beside(f"{name}, weft switch overloaded", weft.overloaded, "its best", weft.highest, GOAL_PLATEAU)
    if has_bmv2():
        bmv2 = measured(bmv2_switches(ONE_SWITCH, bench.program, realtime=realtime), load)
        yield Figure(f"{name}, BMv2", bmv2.highest, "frames/s")
        yield _beside(f"{name}, BMv2 overloaded", bmv2.overloaded, "its best", bmv2.highest)
        yield _beside(f"{name}, weft switch", weft.highest, "BMv2", bmv2.highest, GOAL_OF_BMV2)


def small_program(bench: Bench, size_bytes: int) -> Iterator[Figure]:
    """Figures of one switch with a light program, which brings BMv2 nearer to its best."""
    load = bench.load(ONE_SWITCH, size_bytes, telemetry=False)
    program = compile_program(ROUTER_P4, bench.folder)
    name = f"{size_bytes} B, small router"
    weft = measured(router(ONE_SWITCH, program, bmv2=False, realtime=bench.realtime), load)
    yield Figure(f"{name}, weft switch", weft.highest, "frames/s")
    if has_bmv2():
        bmv2 = measured(router(ONE_SWITCH, program, bmv2=True, realtime=bench.realtime), load)
        yield Figure(f"{name}, BMv2", bmv2.highest, "frames/s")
        yield _beside(f"{name}, BMv2 overloaded", bmv2.overloaded, "its best", bmv2.highest)
        yield _beside(f"{name}, weft switch", weft.highest, "BMv2", bmv2.highest, GOAL_OF_BMV2)


def three_switches(bench: Bench, size_bytes: int) -> Iterator[Figure]:
    """Figures of a path leaf-spine-leaf."""
    load = bench.load(THREE_SWITCHES, size_bytes)
    name = f"{size_bytes} B, leaf-spine-leaf"
    daemon = weft_daemon(THREE_SWITCHES, bench.program, bench.folder, realtime=bench.realtime)
    weft = measured(daemon, load)
    yield Figure(f"{name}, weft", weft.highest, "frames/s")
    yield _beside(f"{name}, weft overloaded", weft.overloaded, "its best", weft.highest, GOAL_PLATEAU)
    if has_bmv2():
        bmv2 = measured(bmv2_switches(THREE_SWITCHES, bench.program, realtime=bench.realtime), load)
        yield Figure(f"{name}, BMv2", bmv2.highest, "frames/s")
        yield _beside(f"{name}, weft", weft.highest, "BMv2", bmv2.highest, GOAL_OF_BMV2_PATH)


def _beside(name: str, value: float, other: str, other_value: float, goal: float | None = None) -> Figure:
    ratio = value / other_value if other_value else float("nan")
    return Figure(name, value, "frames/s", other, ratio, goal)


MEASUREMENTS: dict[str, tuple[FabricSpec, Callable[[Bench, int], Iterator[Figure]]]] = {
    "one": (ONE_SWITCH, one_switch),
    "router": (ONE_SWITCH, small_program),
    "three": (THREE_SWITCHES, three_switches),
}


def _wires(fabric: FabricSpec) -> AbstractContextManager[None]:
    """The fabric's links as veth pairs; internal links leave those between switches unused."""
    ports = [port for switch in fabric.switches for port in switch.ports]
    return veth_pairs(
        (port.interface, port.peer_interface)
        for port in ports
        if port.peer_is_host or port.interface < port.peer_interface
    )


def main() -> None:
    """Print the figures."""
    parser = argument_parser(__doc__)
    parser.add_argument("--bytes", type=int, nargs="+", default=[128, 1024], help="frame sizes")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each step of the load")
    parser.add_argument("--paths", nargs="+", default=list(MEASUREMENTS), choices=list(MEASUREMENTS))
    options = parser.parse_args()
    enter_own_network()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        binary, program = build_forwarder(folder), compiled_fabric(folder)
        bench = Bench(binary, program, folder, options.seconds, options.realtime)
        for path in options.paths:
            fabric, run = MEASUREMENTS[path]
            with _wires(fabric):
                for size_bytes in options.bytes:
                    figures += run(bench, size_bytes)
    report("veth to veth, sender and switch on a core each", figures, as_json=options.json)


if __name__ == "__main__":
    main()

"""Packets per second through fabric.p4's pipelines in memory, without ports, beside the oracle and a null program.

    .venv/bin/python benchmarks/bench_pipeline.py [--packets N] [--json] [--realtime]

One leaf of a fabric of 16 hosts, programmed by the controller over P4Runtime, takes 128-byte RoCEv2 frames of 64
flows: parse, ingress, egress, deparse. The null program, on the same switch, parses nothing and sends everything to
one port; what is left is the runtime around a program. The oracle is the Python interpreter of the same program.
Each figure is the best of several rounds of processor time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fabric_setup import compiled_fabric, program_over_p4runtime, roce_frames
from figures import Figure, argument_parser, report
from scheduling import pin_this_process

from weft.compiler import compile_file
from weft.scenario.program import Program
from weft.switch.bmv2json import load_program
from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch
from weft.topologies import leaf_spine
from weft.topologies.addressing import CPU_PORT

ROUNDS = 5
ORACLE_PACKETS = 500
SIZE_BYTES = 128
FABRIC = leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=4)
LEAF = "p0l0"
GOAL_PACKETS_PER_S = 3e6
GOAL_TIMES_ORACLE = 200


def programmed_leaf(make: Callable[[], Any], program: Program) -> Any:
    """The leaf, of this kind, holding what the controller writes to it."""
    switches = {spec.name: make() for spec in FABRIC.switches}
    program_over_p4runtime(FABRIC, program, switches)
    return switches[LEAF]


def best_rate(run: Callable[[int], int], packets: int) -> float:
    """Packets per second of processor time; every packet must have left the switch."""
    best = 0.0
    for _ in range(ROUNDS):
        start_s = time.thread_time()
        left = run(packets)
        elapsed_s = time.thread_time() - start_s
        if left != packets:
            raise RuntimeError(f"{packets - left} of {packets} packets did not leave the switch")
        best = max(best, packets / elapsed_s)
    return best


def native_rate(switch: NativeSwitch, frames: list[bytes], packets: int) -> float:
    """Of the compiled pipeline."""
    return best_rate(lambda count: switch.native.process_repeatedly([(1, frame) for frame in frames], count), packets)


def oracle_rate(switch: OracleSwitch, frames: list[bytes]) -> float:
    """Of the interpreter."""

    def run(count: int) -> int:
        return sum(len(switch.process(1, frames[i % len(frames)])) for i in range(count))

    return best_rate(run, ORACLE_PACKETS)


def null_switch() -> NativeSwitch:
    """A switch that runs the null program."""
    switch = NativeSwitch(name="null")
    compiled = compile_file(Path(__file__).parent / "null.p4")
    switch.load(load_program(compiled.json_text().encode()))
    return switch


def measure(packets: int) -> list[Figure]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        program = compiled_fabric(Path(folder))
        native = programmed_leaf(NativeSwitch, program)
        oracle = programmed_leaf(lambda: OracleSwitch(CPU_PORT), program)
    paths = {
        "to a host of the leaf": roce_frames(FABRIC, "h0", "h1", SIZE_BYTES, telemetry=False),
        "to another leaf (ECMP)": roce_frames(FABRIC, "h0", "h15", SIZE_BYTES, telemetry=False),
        "to another leaf, INT stamped": roce_frames(FABRIC, "h0", "h15", SIZE_BYTES),
    }
    null = native_rate(null_switch(), paths["to a host of the leaf"], packets)
    figures = [Figure("null program", null, "packets/s")]
    for name, frames in paths.items():
        compiled = native_rate(native, frames, packets)
        interpreted = oracle_rate(oracle, frames)
        figures += [
            Figure(f"fabric.p4, {name}", compiled, "packets/s", goal=GOAL_PACKETS_PER_S),
            Figure("  compared with the null program", compiled, "packets/s", "null program", compiled / null),
            Figure("  oracle", interpreted, "packets/s"),
            Figure(
                "  compared with the oracle",
                compiled,
                "packets/s",
                "oracle",
                compiled / interpreted,
                GOAL_TIMES_ORACLE,
            ),
        ]
    return figures


def main() -> None:
    """Print the figures."""
    parser = argument_parser(__doc__)
    parser.add_argument("--packets", type=int, default=500_000, help="of each round")
    options = parser.parse_args()
    pin_this_process(1, realtime=options.realtime)
    report("pipeline in memory, one core", measure(options.packets), as_json=options.json)


if __name__ == "__main__":
    main()

"""Additions of in-network aggregation per second and core, through a leaf's whole pipeline in memory.

    .venv/bin/python benchmarks/bench_aggregation_switch.py [--lanes 64] [--type int8] [--operation max] [--packets N]

A leaf with eight hosts below a spine, programmed by the controller over P4Runtime, takes the contributions of all hosts
to 64 slots, round after round: parse, check the iCRC, find job and member, add the lanes, and send what is complete
to the spine with an iCRC of its own. The first contribution of a slot is stored, the other seven are added, so eight
packets make seven additions of each integer in a lane; other operations count alike. With results, each complete slot
is followed by the spine's result, which the leaf sends to the eight hosts. Beside it: the same packets through a null
program, which is the runtime around any program; and NumPy, which adds the same integers in arrays of the host's byte
order. Each figure is the best of several rounds of processor time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fabric_setup import compiled_fabric, controlled
from figures import Figure, argument_parser, report
from scheduling import pin_this_process

from weft.compiler import compile_file
from weft.controller.jobs import JobMembership
from weft.results.verification import UFUNCS
from weft.scenario.program import Program
from weft.switch.bmv2json import load_program
from weft.switch.native import NativeSwitch
from weft.topologies import leaf_spine
from weft.traffic.aggregation_format import IN_PACKETS, LANE_COUNT, LANE_COUNTS, Kind, LaneType, Operation
from weft.traffic.layers import aggregation_frame
from weft.traffic.layers.frames import SWITCH_HOP_LIMIT

ROUNDS = 7
CHILDREN = 8
SLOTS = 64
FABRIC = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=CHILDREN)
LEAF = "p0l0"
ROUND_NUMBERS = (0, 1 << 30, 2 << 30, 3 << 30)
"""Each is newer than the one before, and the first than the last, so that they repeat for ever."""
GOAL_ADDITIONS_PER_S = 100e6

Input = tuple[int, bytes]
"""A port and a frame that arrives there."""


@dataclass(frozen=True)
class Work:
    """Lanes of a packet, what they hold and what is done with them."""

    lanes: int
    lane_type: LaneType
    operation: Operation

    @property
    def type_name(self) -> str:
        """Of the integers, also NumPy's."""
        return self.lane_type.name.lower()

    @property
    def integers(self) -> int:
        """In a packet."""
        return self.lanes * self.lane_type.elements


def programmed_leaf(program: Program) -> tuple[NativeSwitch, list[JobMembership]]:
    """The leaf, with a job of all hosts; and what the hosts must know of it."""
    switches = {spec.name: NativeSwitch(name=spec.name) for spec in FABRIC.switches}
    with controlled(FABRIC, program, switches) as controller:
        memberships = controller.add_job(1, [host.name for host in FABRIC.hosts], SLOTS, [0])
    of_leaf = [host.name for host in FABRIC.hosts if host.nic(0).switch == LEAF]
    return switches[LEAF], [memberships[name][0] for name in of_leaf]


def contributions(members: list[JobMembership], work: Work, round_number: int, slot: int) -> Iterable[Input]:
    """Of all hosts, to a slot in a round."""
    rng = np.random.default_rng(slot)
    for member in members:
        nic = FABRIC.host(member.host).nic(0)
        frame = aggregation_frame(
            source_mac=nic.mac,
            destination_mac=member.aggregation_mac,
            source_ip=str(nic.ipv4.ip),
            destination_ip=str(member.aggregation_address),
            qkey=member.q_key,
            job_id=member.job_id,
            epoch=member.epoch,
            slot=slot,
            round_number=round_number,
            rank=member.rank,
            lanes=rng.integers(-(2**31), 2**31, work.lanes).tolist(),
            operation=work.operation,
            data_type=work.lane_type,
        )
        yield nic.switch_port, bytes(frame)


def result(member: JobMembership, work: Work, round_number: int, slot: int) -> Input:
    """Of the spine, to a slot in a round."""
    leaf = FABRIC.switch(LEAF)
    uplink = next(port for port in leaf.ports if not port.peer_is_host)
    spine = FABRIC.switch(uplink.peer.node)
    frame = aggregation_frame(
        source_mac=spine.mac,
        destination_mac=member.group_mac,
        source_ip=str(spine.address_of(4)),
        destination_ip=str(member.group_address),
        qkey=member.q_key,
        kind=Kind.RESULT,
        job_id=member.job_id,
        epoch=member.epoch,
        slot=slot,
        round_number=round_number,
        lanes=list(range(work.lanes)),
        operation=work.operation,
        data_type=work.lane_type,
        hop_limit=SWITCH_HOP_LIMIT,
    )
    return uplink.number, bytes(frame)


def inputs(members: list[JobMembership], work: Work, *, with_results: bool) -> list[Input]:
    """What the leaf receives in all rounds: in each, what its hosts send to all slots, and the results."""
    listed: list[Input] = []
    for round_number in ROUND_NUMBERS:
        for slot in range(SLOTS):
            listed += contributions(members, work, round_number, slot)
        if with_results:
            listed += [result(members[0], work, round_number, slot) for slot in range(SLOTS)]
    return listed


def best_time_s(run: Callable[[], None]) -> float:
    """Of several rounds, processor time."""
    best = float("inf")
    for _ in range(ROUNDS):
        start_s = time.thread_time()
        run()
        best = min(best, time.thread_time() - start_s)
    return best


def packets_per_s(switch: NativeSwitch, packets: list[Input], count: int, leave: int) -> float:
    """Through this switch, where of each pass over `packets` so many `leave`."""
    passes = max(1, count // len(packets))

    def run() -> None:
        left = switch.native.process_repeatedly(packets, passes * len(packets))
        if left != passes * leave:
            raise RuntimeError(f"{left} packets left, not {passes * leave}")

    return passes * len(packets) / best_time_s(run)


def null_switch() -> NativeSwitch:
    """A switch that runs the null program."""
    switch = NativeSwitch(name="null")
    switch.load(load_program(compile_file(Path(__file__).parent / "null.p4").json_text().encode()))
    return switch


def numpy_additions_per_s(work: Work, additions: int) -> float:
    """NumPy's additions to the integers of all slots, one contribution to each at a time."""
    combine = UFUNCS[work.operation]
    slots = np.zeros((SLOTS, work.integers), work.type_name)
    shape = CHILDREN, SLOTS, work.integers
    addends = np.random.default_rng(1).integers(-(2**31), 2**31, shape).astype(work.type_name)
    passes = max(1, additions // addends.size)

    def run() -> None:
        for _ in range(passes):
            for each in addends:
                combine(slots, each, out=slots)

    return passes * addends.size / best_time_s(run)


def measure(work: Work, packets: int) -> list[Figure]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        leaf, members = programmed_leaf(compiled_fabric(Path(folder), work.lanes))
    complete = len(ROUND_NUMBERS) * SLOTS
    plain, with_results = (inputs(members, work, with_results=wanted) for wanted in (False, True))
    null = packets_per_s(null_switch(), plain, packets, len(plain))
    rate = packets_per_s(leaf, plain, packets, complete)
    rate_with_results = packets_per_s(leaf, with_results, packets, complete * (1 + CHILDREN))
    additions = work.integers * (CHILDREN - 1) / CHILDREN
    additions_with_results = work.integers * (CHILDREN - 1) / (CHILDREN + 1)
    adding, unit = rate * additions, f"{work.type_name}/s"
    numpy = numpy_additions_per_s(work, int(packets * additions))
    return [
        Figure("null program", null, "packets/s"),
        Figure("contributions", rate, "packets/s", "null program", rate / null),
        Figure("  additions", adding, unit, goal=GOAL_ADDITIONS_PER_S),
        Figure("  NumPy's additions", numpy, unit, "NumPy", adding / numpy),
        Figure("contributions and results", rate_with_results, "packets/s", "null program", rate_with_results / null),
        Figure("  additions", rate_with_results * additions_with_results, unit),
    ]  # fmt: skip


def main() -> None:
    """Print the figures."""
    parser = argument_parser(__doc__)
    parser.add_argument("--lanes", type=int, default=LANE_COUNT, choices=LANE_COUNTS[1:], help="of a packet")
    parser.add_argument("--type", default="int32", choices=[each.name.lower() for each in LaneType], help="of integers")
    parser.add_argument("--operation", default="sum", choices=[each.name.lower() for each in IN_PACKETS])
    parser.add_argument("--packets", type=int, default=400_000, help="of each round")
    options = parser.parse_args()
    pin_this_process(1, realtime=options.realtime)
    work = Work(options.lanes, LaneType[options.type.upper()], Operation[options.operation.upper()])
    report(
        f"aggregation of {work.lanes} lanes of {work.type_name} by {options.operation}, one core",
        measure(work, options.packets),
        as_json=options.json,
    )


if __name__ == "__main__":
    main()

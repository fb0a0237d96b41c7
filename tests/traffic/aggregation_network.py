"""Workers (native aggregation clients) under a tree of slot machines, over a network that loses, doubles and delays."""

import itertools
import random
import weakref
from dataclasses import dataclass

import numpy as np
from slot_machine import Output, SlotMachine

from weft.engine import Collector, Engine, Link, TransmitPort, _core
from weft.topologies.addressing import (
    host_ipv4,
    host_ipv6,
    leaf_ipv4,
    leaf_ipv6,
    result_group_address,
    result_group_mac,
)
from weft.traffic.aggregation_format import CONTRIBUTION_QP, RESULT_QP

JOB_ID, EPOCH, Q_KEY = 0x1234, 7, 0xCAFEF00D
HOP_PS = 1_000_000
TICK_PS = 500_000
TIMEOUT_PS = 40 * HOP_PS


@dataclass(frozen=True)
class Faults:
    """Per packet and hop. A late packet takes up to `late_hops` hops longer: past several rounds."""

    loss: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    late_hops: int = 200


class AggregationNetwork:
    """`leaf_sizes` workers below each leaf; one leaf is a root itself, several have a spine above them."""

    def __init__(self, leaf_sizes, slot_count=8, faults=Faults(), seed=0, ip_version=4, **client_options):
        self.ip_version = ip_version
        self.engine = Engine(seed=seed)
        self.random = random.Random(seed)
        self.faults = faults
        self.actions = {}
        self.action_numbers = itertools.count()
        self.places = [(leaf, child) for leaf, size in enumerate(leaf_sizes) for child in range(size)]
        # The tree numbers workers from 0 in order of these places; ranks have any of them.
        self.numbers = list(range(len(self.places)))
        self.random.shuffle(self.numbers)
        ends = list(itertools.accumulate(leaf_sizes, initial=0))
        below = [range(first, end) for first, end in itertools.pairwise(ends)]
        self.leaves = [
            SlotMachine(len(at), slot_count, EPOCH, len(below) == 1, [range(n, n + 1) for n in at]) for at in below
        ]
        self.spine = SlotMachine(len(leaf_sizes), slot_count, EPOCH, True, below)
        self.workers = [self.add_worker(*place, slot_count, client_options) for place in self.places]

    def add_worker(self, leaf, child, slot_count, options):
        nic = _core.Nic(self.engine, f"w{leaf}.{child}")
        uplink = Collector(self.engine)
        link = Link(self.engine, name=nic.name, delay_ps=HOP_PS)
        link.connect(uplink)
        transmit_port = TransmitPort(self.engine, link, rate_bps=10_000_000_000)
        nic.add_port(
            transmit_port,
            mac=f"02:00:00:{leaf:02x}:00:{child + 1:02x}",
            addresses=[str(host_ipv4(0, leaf, child)), str(host_ipv6(0, leaf, child))],
        )
        executor = _core.ScheduleExecutor(self.engine)
        client = _core.AggregationClient(
            nic,
            0,
            executor,
            job_id=JOB_ID,
            epoch=EPOCH,
            q_key=Q_KEY,
            rank=child,
            rank_count=len(self.places),
            slot_count=slot_count,
            worker_rank=self.numbers.index(self.places.index((leaf, child))),
            worker_numbers=self.numbers,
            destination_mac=f"02:01:00:{leaf:02x}:00:00",
            destination_ip=self.leaf_address(leaf),
            group_ip=str(result_group_address(JOB_ID, self.ip_version)),
            retransmission_timeout_ps=TIMEOUT_PS,
            **options,
        )
        executor.add_aggregator(client)
        return nic, uplink, executor, client

    def leaf_address(self, leaf) -> str:
        return str(leaf_ipv6(0, leaf) if self.ip_version == 6 else leaf_ipv4(0, leaf))

    def later(self, action) -> None:
        """Call action() after a hop, subject to the faults."""
        if self.random.random() < self.faults.loss:
            return
        for _ in range(2 if self.random.random() < self.faults.duplicate else 1):
            delay_ps = HOP_PS
            if self.random.random() < self.faults.late:
                delay_ps += self.random.randrange(self.faults.late_hops) * HOP_PS
            number = next(self.action_numbers)
            self.actions[number] = action
            # What the engine holds must not keep the network, and with it the engine.
            own = weakref.proxy(self)
            self.engine.schedule_at(
                self.engine.now_ps + delay_ps, lambda own=own, number=number: own.actions.pop(number)()
            )

    def poll_uplinks(self) -> None:
        for (leaf, child), (_, uplink, _, _) in zip(self.places, self.workers, strict=True):
            for _, _, frame in uplink.packets:
                headers, payload = _core.parse_packet(frame)
                assert headers["bth"]["destination_qp"] == CONTRIBUTION_QP
                assert headers["destination_ip"] == self.leaf_address(leaf)
                # 0 would mean that the sender labels no flow.
                assert (headers.get("flow_label", 0) != 0) == (self.ip_version == 6)
                assert headers["deth"] == {"q_key": Q_KEY, "source_qp": CONTRIBUTION_QP}
                assert headers["bth"]["psn"] == headers["aggregation"]["round"] % 2**24
                lanes = np.frombuffer(payload, ">i4").astype(np.int32) if payload else None
                self.later(lambda a=(leaf, child, headers["aggregation"], lanes): self.at_leaf(*a))
            uplink.clear()

    def at_leaf(self, leaf, child, header, lanes):
        for output in self.leaves[leaf].contribution(child, header, lanes):
            self.from_leaf(leaf, output)

    def from_leaf(self, leaf: int, output: Output):
        if output.to == "parent":
            header = self.header(output) | {"rank": leaf}
            self.later(lambda: self.at_spine(leaf, header, output.lanes))
            return
        for number, place in enumerate(self.places):
            if place[0] == leaf and output.to in ("children", place[1]):
                frame = self.result_frame(leaf, output, self.leaves[leaf].lanes_to(place[1], output))
                self.later(lambda n=number, f=frame: self.engine.inject(self.workers[n][0], 0, f))

    def at_spine(self, leaf, header, lanes):
        for output in self.spine.contribution(leaf, header, lanes):
            for below in range(len(self.leaves)):
                if output.to in ("children", below):
                    copy = self.spine.lanes_to(below, output)
                    self.later(lambda b=below, o=output, c=copy: self.result_at_leaf(b, o, c))

    def result_at_leaf(self, leaf, output, lanes):
        for passed_on in self.leaves[leaf].result(self.header(output), lanes):
            self.from_leaf(leaf, passed_on)

    @staticmethod
    def header(output: Output) -> dict:
        return {
            "slot": output.slot, "round": output.round, "epoch": EPOCH, "operation": output.operation,
            "destination": output.destination, "data_type": output.data_type, "flags": output.flags,
        }  # fmt: skip

    def result_frame(self, leaf: int, output: Output, lanes: np.ndarray | None, **changes) -> bytes:
        lanes = np.zeros(0, np.int32) if lanes is None else lanes
        aggregation = self.header(output) | {"kind": 1, "job_id": JOB_ID, "rank": 0, "lane_count": lanes.size}
        return _core.build_packet(
            {
                "destination_mac": result_group_mac(JOB_ID, self.ip_version),
                "source_mac": f"02:01:00:{leaf:02x}:00:00",
                "source_ip": self.leaf_address(leaf),
                "destination_ip": str(result_group_address(JOB_ID, self.ip_version)),
                "bth": {"opcode": 0x64, "destination_qp": RESULT_QP, "psn": output.round % 2**24},
                "deth": {"q_key": changes.pop("q_key", Q_KEY), "source_qp": CONTRIBUTION_QP},
                "aggregation": aggregation | changes,
            },
            lanes.astype(">i4").tobytes(),
        )

    def start(self, inputs, dtype, operation="sum", chunks=1, kind="all_reduce", root=0):
        """Start a collective on all workers, as `chunks` requests each; `inputs` by rank. Returns (arrays, runs)."""
        arrays, runs = [data.copy() for data in inputs], []
        for number, (_, _, executor, _) in enumerate(self.workers):
            rank = self.numbers.index(number)
            array = arrays[rank]
            schedule = _core.Schedule()
            buffer = schedule.add_buffer(array)
            bounds = [array.size * part // chunks for part in range(chunks + 1)]
            for begin, end in itertools.pairwise(bounds):
                span = (buffer, array.itemsize * begin, array.itemsize * (end - begin))
                schedule.add_aggregate(
                    0,
                    span,
                    dtype=dtype,
                    operation=operation,
                    kind=kind,
                    rank=rank,
                    ranks=len(inputs),
                    root=root,
                )
            runs.append(executor.start(schedule, self.random.randrange(20) * HOP_PS))
        return arrays, runs

    def finish(self, runs, limit_ps=10**12) -> list[dict]:
        """Serve until all runs have ended; returns their statuses."""
        deadline_ps = self.engine.now_ps + limit_ps
        while self.engine.now_ps < deadline_ps:
            self.engine.run_for(TICK_PS)
            self.poll_uplinks()
            statuses = [w[2].status(run) for w, run in zip(self.workers, runs, strict=True)]
            if all(status["state"] in ("finished", "failed") for status in statuses):
                return statuses
        raise AssertionError(f"not finished after {limit_ps} ps: {statuses}")

    def all_reduce(self, inputs, dtype, operation="sum", chunks=1) -> list[np.ndarray]:
        return self.collective("all_reduce", inputs, dtype, operation, chunks)

    def collective(self, kind, inputs, dtype, operation="sum", chunks=1, root=0) -> list[np.ndarray]:
        """Run it, and return every rank's data."""
        arrays, runs = self.start(inputs, dtype, operation, chunks, kind, root)
        for status in self.finish(runs):
            assert status["state"] == "finished", status
        return arrays

    def total(self, counter: str) -> int:
        return sum(worker[3].stats()[counter] for worker in self.workers)

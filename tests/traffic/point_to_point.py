"""Ranks whose NICs are joined by direct links, a pair of ports for every connection of their schedules."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weft.engine import Link, TransmitPort, _core, make_congestion_control
from weft.traffic.lane_schedule import Schedule
from weft.traffic.messages import AS_BYTES
from weft.traffic.native_schedule import Peers, RemoteBuffer, build_native_schedule
from weft.traffic.schedule_nodes import DATA, SCRATCH, SINK, Channel

RATE_BPS = 10_000_000_000
DELAY_PS = 1_000_000


@dataclass
class Host:
    """One rank: its NIC, executor, connections and registered memory."""

    nic: _core.Nic
    executor: _core.ScheduleExecutor
    channels: dict[Channel, int] = field(default_factory=dict)
    queue_pairs: dict[Channel, _core.RcQueuePair] = field(default_factory=dict)
    memory: dict[str, _core.MemoryRegion] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class PointToPoint:
    """All ranks in one engine of virtual time. `faults` are Link's; each direction has its own stream."""

    def __init__(self, engine, rank_count: int, *, telemetry: bool = False, **faults):
        self.engine, self.faults, self.telemetry = engine, faults, telemetry
        self.hosts = [Host(_core.Nic(engine, f"h{rank}"), _core.ScheduleExecutor(engine)) for rank in range(rank_count)]
        self.links = []

    def add_port(self, rank: int, mac: str, address: str) -> tuple[int, Link]:
        link = Link(self.engine, name=f"{rank} {mac}", delay_ps=DELAY_PS, **self.faults)
        transmit_port = TransmitPort(self.engine, link, rate_bps=RATE_BPS)
        self.links.append(link)
        return self.hosts[rank].nic.add_port(transmit_port, mac=mac, addresses=[address]), link

    def connect(self, one: int, other: int, plane: int, label: str = "collective") -> None:
        """Join two ranks over a pair of links of their own."""
        number = len(self.links)
        ends = []
        for rank, peer, side in ((one, other, 0), (other, one, 1)):
            mac, address = f"02:00:00:00:{number:02x}:{side:02x}", f"10.0.{number}.{side}"
            port, link = self.add_port(rank, mac, address)
            queue_pair = self.hosts[rank].nic.allocate_queue_pair_number()
            ends.append((rank, Channel(plane, peer, label), port, link, mac, address, queue_pair))
        for own, far in (ends, ends[::-1]):
            rank, channel, port, link, *_, number = own
            host = self.hosts[rank]
            link.connect(self.hosts[far[0]].nic, far[2])
            host.queue_pairs[channel] = _core.RcQueuePair(
                host.nic,
                port,
                host.executor,
                remote_queue_pair=far[6],
                destination_mac=far[4],
                destination_ip=far[5],
                congestion_control=make_congestion_control(
                    "fixed-window",
                    line_rate_bps=RATE_BPS,
                    base_round_trip_ps=2 * DELAY_PS,
                    frame_bytes=1100,
                    parameters={"window_bytes": 32 * 1024},
                ),
                retransmission_timeout_ps=20 * DELAY_PS,
                queue_pair=number,
                telemetry=self.telemetry,
            )
            host.channels[channel] = host.executor.add_channel(host.queue_pairs[channel])

    def connect_all(self, schedules: list[Schedule]) -> None:
        pairs = {(min(s.rank, c.peer), max(s.rank, c.peer), c.plane, c.label) for s in schedules for c in s.channels()}
        for one, other, plane, label in sorted(pairs):
            self.connect(one, other, plane, label)

    def start(
        self,
        schedules: list[Schedule],
        inputs: list[np.ndarray],
        start_ps: list[int] = (),
        payload: str = AS_BYTES,
    ) -> list[int]:
        """Register memory, exchange the regions between all ranks, and start all; returns the runs' numbers."""
        for host, schedule, data in zip(self.hosts, schedules, inputs, strict=True):
            host.arrays = {DATA: data.copy(), SCRATCH: np.zeros_like(data)}
            host.memory = {name: host.nic.register_memory(array) for name, array in host.arrays.items()}
            host.memory[SINK] = host.nic.register_sink(max(1, schedule.buffer_bytes.get(SINK, 0)))
        remote: Peers = {
            rank: {name: RemoteBuffer(region.virtual_address, region.rkey) for name, region in host.memory.items()}
            for rank, host in enumerate(self.hosts)
        }
        runs = []
        times = start_ps or [0] * len(self.hosts)
        for host, schedule, time_ps in zip(self.hosts, schedules, times, strict=True):
            native = build_native_schedule(schedule, host.arrays, host.channels, {}, remote, payload)
            runs.append(host.executor.start(native, time_ps))
        return runs

    def run(self, schedules, inputs) -> list[np.ndarray]:
        """Run all schedules to their end and return the data of every rank."""
        runs = self.start(schedules, inputs)
        self.engine.run()
        for host, run in zip(self.hosts, runs, strict=True):
            status = host.executor.status(run)
            assert status["state"] == "finished", status
        return [host.arrays[DATA] for host in self.hosts]

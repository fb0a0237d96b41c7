"""Links that fail between partitions: the same losses as in one engine, for every number of workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import Collector, Engine, Link, Partitions, TransmitPort

NS = 1000
PARTS = 3


@dataclass
class Ring:
    """Ports in a row over the partitions, whose links fail; the last one leads to a collector."""

    clock: Engine | Partitions
    engines: list[Engine]
    delays_ps: list[int]
    ports: list[TransmitPort] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, delay_ps in enumerate(self.delays_ps):
            engine = self.engines[number % len(self.engines)]
            self.links.append(Link(engine, name=str(number), delay_ps=delay_ps, duplicate=0.2, loss=0.05,
                                   delay_probability=0.2, extra_delay_ps=900 * NS))  # fmt: skip
            self.ports.append(TransmitPort(engine, self.links[-1], rate_bps=10**10, queue_capacity_bytes=6000))
        for link, onward in zip(self.links, self.ports[1:], strict=False):
            link.connect(onward)
        last = self.engines[len(self.links) % len(self.engines)]
        self.collector = Collector(last)
        self.links[-1].connect(self.collector)

    def fail(self, number: int) -> None:
        self.ports[number].set_up(False)
        self.links[number].cut()
        assert self.clock.packet_conservation()["missing"] == {"packets": 0, "bytes": 0}

    def outcome(self) -> list[Any]:
        return [
            *(port.stats() for port in self.ports),
            *(link.stats() for link in self.links),
            self.collector.packets,
            self.clock.packet_conservation(),
            self.clock.live_packets,
        ]


def build(delays_ps: list[int], workers: int) -> Ring:
    if workers == 0:
        engine = Engine(seed=5)
        return Ring(engine, [engine] * PARTS, delays_ps)
    clock = Partitions(seed=5, workers=workers)
    return Ring(clock, [clock.add() for _ in range(PARTS)], delays_ps)


@settings(max_examples=40, deadline=None)
@given(
    delays_ps=st.lists(st.sampled_from([300 * NS, 500 * NS, 2000 * NS]), min_size=2, max_size=6),
    frames=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 30), st.sampled_from([64, 1500])), min_size=1, max_size=60
    ),
    failures=st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 12_000), st.integers(1, 3000)), min_size=1, max_size=4
    ),
    stops=st.lists(st.integers(1, 20_000), max_size=6),
)
def test_failures_at_any_time_lose_the_same_and_balance(
    delays_ps: list[int],
    frames: list[tuple[int, int, int]],
    failures: list[tuple[int, int, int]],
    stops: list[int],
) -> None:
    outcomes = []
    for workers in (0, 1, 2, 3):
        ring = build(delays_ps, workers)
        count = len(ring.links)
        for place, time, size in frames:
            port = ring.ports[place % count]
            ring.engines[place % count % PARTS].inject(port, 0, bytes(size), time * 100 * NS)
        for place, at, lasts in failures:
            # Between the ticks of everything else, so that one engine's order of events at a time plays no part.
            at_ps = at * NS + 7
            ring.clock.schedule_at(at_ps, lambda number=place % count, ring=ring: ring.fail(number))
            ring.clock.schedule_at(at_ps + lasts * NS, lambda port=ring.ports[place % count]: port.set_up(True))
        for time in sorted(stops):
            ring.clock.run_until(time * NS)
            assert ring.clock.packet_conservation()["missing"] == {"packets": 0, "bytes": 0}
        ring.clock.run()
        outcomes.append(ring.outcome())
    assert outcomes[0] == outcomes[1] == outcomes[2] == outcomes[3]
    conservation = ring.clock.packet_conservation()
    assert conservation["queued"]["packets"] == conservation["in_flight"]["packets"] == 0


def test_what_is_on_a_link_and_in_its_serialiser_is_lost_and_later_packets_are_not() -> None:
    for workers in (0, 1):
        ring = build([2000 * NS, 300 * NS], workers)
        for link in ring.links:
            link.set_faults()
        # 1,250 B take 1 us at 10 Gb/s: at 2.5 us two are on the link, one is being sent, one waits.
        for _ in range(4):
            ring.engines[0].inject(ring.ports[0], 0, bytes(1250), 0)
        ring.clock.schedule_at(2500 * NS, lambda ring=ring: ring.fail(0))
        ring.clock.schedule_at(2600 * NS, lambda ring=ring: ring.ports[0].set_up(True))
        ring.engines[0].inject(ring.ports[0], 0, bytes(100), 2650 * NS)
        ring.clock.run()
        assert ring.links[0].stats()["cut"] == {"packets": 3, "bytes": 3750}
        assert ring.ports[0].stats()["down_dropped"] == {"packets": 1, "bytes": 1250}
        assert [len(packet[2]) for packet in ring.collector.packets] == [100]


def test_an_event_of_a_partition_cannot_cut_a_link_between_partitions() -> None:
    ring = build([300 * NS, 300 * NS], 1)
    ring.engines[0].schedule_at(5 * NS, lambda: ring.links[0].cut())
    with pytest.raises(RuntimeError, match="between windows"):
        ring.clock.run()

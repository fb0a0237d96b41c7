"""Partitions: the same outcome as one engine's, for every number of workers and however a run is cut."""

import gc
import os
import signal
import threading
import weakref
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import Collector, Engine, Link, Partitions, Timer, TransmitPort

GBPS = 10**9
NS = 1000


@dataclass(frozen=True)
class Relay:
    """A port, in a partition, whose link leads to a later relay, or (0) to a collector of its own."""

    partition: int
    rate_bps: int
    delay_ps: int
    onward: int
    loss: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0


@dataclass
class Net:
    """Relays as they were described, built in one engine or in partitions."""

    relays: list[Relay]
    clock: Engine | Partitions
    engines: list[Engine]
    ports: list[TransmitPort] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    collectors: list[Collector] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, relay in enumerate(self.relays):
            engine = self.engines[relay.partition]
            link = Link(
                engine,
                name=str(number),
                delay_ps=relay.delay_ps,
                loss=relay.loss,
                duplicate=relay.duplicate,
                delay_probability=relay.late,
                extra_delay_ps=3000 * NS,
            )
            self.links.append(link)
            self.ports.append(TransmitPort(engine, link, rate_bps=relay.rate_bps, queue_capacity_bytes=5_000))
        for number, relay in enumerate(self.relays):
            target = number + relay.onward
            if relay.onward == 0 or target >= len(self.relays):
                self.collectors.append(Collector(self.engines[(relay.partition + 1) % len(self.engines)]))
                self.links[number].connect(self.collectors[-1], number)
            else:
                self.links[number].connect(self.ports[target], number)

    @classmethod
    def whole(cls, relays: list[Relay], partitions: int) -> "Net":
        engine = Engine(seed=7)
        return cls(relays, engine, [engine] * partitions)

    @classmethod
    def parted(cls, relays: list[Relay], partitions: int, workers: int) -> "Net":
        clock = Partitions(seed=7, workers=workers)
        return cls(relays, clock, [clock.add() for _ in range(partitions)])

    def inject(self, frames: list[tuple[int, int, int]]) -> None:
        """(relay, time, size) each."""
        for number, (relay, time_ps, size_bytes) in enumerate(frames):
            engine = self.engines[self.relays[relay].partition]
            engine.inject(self.ports[relay], 0, number.to_bytes(4, "big") + bytes(size_bytes), time_ps)

    def outcome(self) -> list[object]:
        return [
            *(collector.packets for collector in self.collectors),
            *(port.stats() for port in self.ports),
            *(link.stats() for link in self.links),
            self.clock.now_ps,
            self.clock.live_packets - sum(collector.received_packets for collector in self.collectors),
        ]


PROBABILITY = st.sampled_from([0.0, 0.0, 0.3])
RELAYS = st.lists(
    st.builds(
        Relay,
        partition=st.integers(0, 4),
        rate_bps=st.sampled_from([0, 10 * GBPS, 40 * GBPS]),
        delay_ps=st.sampled_from([100 * NS, 100 * NS, 250 * NS, 1300 * NS]),
        onward=st.integers(0, 4),
        loss=PROBABILITY,
        duplicate=PROBABILITY,
        late=PROBABILITY,
    ),
    min_size=2,
    max_size=14,
)
FRAMES = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 40).map(lambda n: n * 50 * NS), st.sampled_from([60, 1500])),
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(RELAYS, FRAMES, st.lists(st.integers(1, 2000 * NS), max_size=6))
def test_partitions_do_what_one_engine_does(relays, frames, cuts_ps):
    frames = [(relay % len(relays), time_ps, size) for relay, time_ps, size in frames]
    outcomes, packets_alive = [], []
    for net in (
        Net.whole(relays, 5),
        Net.parted(relays, 5, workers=1),
        Net.parted(relays, 5, workers=2),
        Net.parted(relays, 5, workers=3),
    ):
        net.inject(frames)
        alive = []
        for time_ps in sorted(cuts_ps):
            net.clock.run_until(time_ps)
            assert net.clock.now_ps == time_ps
            alive.append(net.clock.live_packets)
        packets_alive.append(alive)
        net.clock.run()
        outcomes.append(net.outcome())
    assert all(alive == packets_alive[0] for alive in packets_alive[1:])  # those under way included
    uncut = Net.parted(relays, 5, workers=2)
    uncut.inject(frames)
    uncut.clock.run()
    outcomes.append(uncut.outcome())
    if cuts_ps and max(cuts_ps) > uncut.clock.now_ps:
        outcomes[-1][-2] = max(cuts_ps)
    assert all(outcome == outcomes[0] for outcome in outcomes[1:])
    assert outcomes[0][-1] == 0  # packets are with collectors, dropped, or lost; none is anywhere else


def ring(workers: int, size: int = 6, frames: int = 400) -> list[object]:
    """Bursts around a ring of partitions, enough for windows to be shared among threads."""
    relays = [Relay(number % size, 100 * GBPS, 500 * NS, 1) for number in range(4 * size)]
    net = Net.parted(relays, size, workers)
    net.inject([(index % len(relays), 0, 200 + index) for index in range(frames)])
    net.clock.run()
    return net.outcome()


def test_workers_share_a_window_for_the_same_outcome():
    assert ring(1) == ring(2) == ring(3) == ring(16)


def test_workers_may_change_between_runs():
    relays = [Relay(number % 3, 10 * GBPS, 500 * NS, 1) for number in range(6)]
    steady, changing = Net.parted(relays, 3, 1), Net.parted(relays, 3, 1)
    for net, workers in ((steady, (1, 1, 1)), (changing, (2, 3, 1))):
        net.inject([(index % 6, index * 40 * NS, 900) for index in range(200)])
        for number, count in enumerate(workers):
            net.clock.workers = count
            net.clock.run_for((number + 1) * 1100 * NS)
        net.clock.run()
    assert steady.outcome() == changing.outcome()


def grouped(groups: list[int | None], workers: int) -> Partitions:
    """Partitions of these groups, all with the same amount of work."""
    clock = Partitions(workers=workers)
    for group in groups:
        Link(clock.add(group=group))
    return clock


def test_groups_that_can_be_shared_out_stay_together():
    clock = grouped([0, 1, 0, 1, None, None], workers=2)
    shares = [set(share) for share in clock.shares()]
    assert sorted(map(sorted, (share - {4, 5} for share in shares))) == [[0, 2], [1, 3]]
    assert [len(share) for share in shares] == [3, 3]


@pytest.mark.parametrize("groups", [[0] * 6, [0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]])
def test_groups_that_cannot_are_split(groups):
    assert [len(share) for share in grouped(groups, workers=2).shares()] == [3, 3]


@pytest.mark.parametrize("pairs", [[(0, 2), (1, 3)], [(0, 3), (1, 2)]])
def test_partitions_that_links_join_stay_together(pairs):
    clock = Partitions(workers=2)
    engines = [clock.add() for _ in range(4)]
    for a, b in [*pairs, *pairs, (0, 1), (2, 3)]:
        for near, far in ((a, b), (b, a)):
            Link(engines[near], delay_ps=500 * NS).connect(Collector(engines[far]))
    assert sorted(map(sorted, clock.shares())) == sorted(map(sorted, pairs))


def test_links_do_not_make_shares_uneven():
    clock = Partitions(workers=2)
    engines = [clock.add() for _ in range(8)]
    for far in engines[1:]:
        Link(engines[0], delay_ps=500 * NS).connect(Collector(far))
    assert [len(share) for share in clock.shares()] == [4, 4]


def test_no_more_shares_than_partitions():
    assert grouped([None, None], workers=5).shares() == [[0], [1]]


def test_one_way_traffic_leaves_no_pile_of_packets_behind():
    relays = [Relay(0, 100 * GBPS, 500 * NS, 1), Relay(1, 100 * GBPS, 500 * NS, 0)]
    net = Net.parted(relays, 2, workers=2)
    for round_number in range(20):
        for index in range(5):
            net.engines[0].inject(net.ports[0], 0, bytes(300), net.clock.now_ps + index)
        net.clock.run()
        assert net.collectors[0].received_packets == 5 * (round_number + 1)
        net.collectors[0].clear()
        assert net.clock.live_packets == 0


# --- control


def two_partitions(delay_ps: int = 500 * NS, workers: int = 1) -> Net:
    return Net.parted([Relay(0, 0, delay_ps, 0), Relay(1, 0, delay_ps, 0)], 2, workers)


def test_windows_are_the_shortest_delay_and_a_microsecond_at_most():
    assert Partitions().window_ps == 1000 * NS
    assert two_partitions(300 * NS).clock.window_ps == 300 * NS
    assert two_partitions(5000 * NS).clock.window_ps == 1000 * NS


def test_control_comes_after_the_events_of_its_time():
    net = two_partitions()
    seen = []
    for number, engine in enumerate(net.engines):
        for time_ps in (10, 20, 30):
            engine.schedule_at(time_ps, lambda number=number, time_ps=time_ps: seen.append((number, time_ps)))
    net.clock.schedule_at(20, lambda: seen.append(("control", net.clock.now_ps, net.engines[0].now_ps)))
    net.clock.run()
    assert seen == [(0, 10), (0, 20), (1, 10), (1, 20), ("control", 20, 20), (0, 30), (1, 30)]


def test_a_stop_from_control_leaves_the_rest_for_later():
    net = two_partitions()
    seen = []
    net.engines[1].schedule_at(30, lambda: seen.append(30))
    net.clock.schedule_at(20, net.clock.request_stop)
    net.clock.run()
    assert (seen, net.clock.now_ps) == ([], 20)
    net.clock.run()
    assert (seen, net.clock.now_ps) == ([30], 30)


def test_a_stop_from_an_event_ends_its_window():
    net = two_partitions(delay_ps=500)
    seen = []
    net.engines[0].schedule_at(10, net.engines[0].request_stop)
    net.engines[1].schedule_at(509, lambda: seen.append(509))
    net.engines[1].schedule_at(510, lambda: seen.append(510))
    net.clock.run()
    assert (seen, net.clock.now_ps) == ([509], 509)


def test_an_idle_stretch_costs_no_windows():
    net = two_partitions()
    net.engines[0].schedule_at(10**15, lambda: None)
    net.clock.run()
    assert net.clock.now_ps == 10**15
    assert net.clock.windows_served == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_failure_of_a_window_is_raised_and_the_window_is_whole(workers):
    net = two_partitions(workers=workers)
    seen = []

    def fail(text):
        raise LookupError(text)

    net.engines[0].schedule_at(20, lambda: fail("second"))
    net.engines[0].schedule_at(30, lambda: seen.append(30))
    net.engines[1].schedule_at(10, lambda: fail("first"))
    with pytest.raises(LookupError, match="first"):
        net.clock.run()
    assert seen == [30]
    net.clock.run()  # and the rest goes on
    assert net.clock.now_ps == 30


def test_a_link_without_a_connection_is_an_error_in_a_partition_too():
    clock = Partitions()
    engine = clock.add()
    port = TransmitPort(engine, Link(engine))
    engine.inject(port, 0, b"lost")
    with pytest.raises(RuntimeError, match="connected to nothing"):
        clock.run()


def tick_for_ever(engine: Engine) -> Timer:
    """A timer whose callback holds neither it nor the engine, which would then stay, and their threads."""
    own_engine = weakref.proxy(engine)

    def tick() -> None:
        ticking.arm(own_engine.now_ps + 100)

    timer = Timer(engine, tick)
    ticking = weakref.proxy(timer)
    timer.arm(0)
    return timer


def test_ctrl_c_ends_a_run():
    net = two_partitions(workers=2)
    timers = [tick_for_ever(engine) for engine in net.engines]
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        net.clock.run()
    before_ps = net.clock.now_ps
    net.clock.run_for(1000)
    assert net.clock.now_ps == before_ps + 1000
    assert len(timers) == 2  # one of them may have been interrupted in its own event


def test_other_threads_come_in_between_windows():
    net = two_partitions(workers=2)
    timers = [tick_for_ever(engine) for engine in net.engines]
    runner = threading.Thread(target=net.clock.run)
    runner.start()
    while net.clock.now_ps < 10_000 * NS:
        net.ports[0].stats()
    with net.clock.lock():
        first = [net.clock.now_ps, *(engine.events_served for engine in net.engines)]
        assert first == [net.clock.now_ps, *(engine.events_served for engine in net.engines)]
    net.clock.request_stop()
    runner.join()
    assert all(timer.deadline_ps is not None for timer in timers)


# --- invalid combinations


def test_partitions_meet_only_through_links_with_delay():
    clock = Partitions()
    a, b = clock.add(), clock.add()
    with pytest.raises(ValueError, match="delay 0 between two partitions"):
        Link(a).connect(Collector(b))
    with pytest.raises(ValueError, match="partitions of one run"):
        Link(a, delay_ps=1).connect(Collector(Engine()))
    with pytest.raises(ValueError, match="two engines"):
        TransmitPort(a, Link(b, delay_ps=1))
    with pytest.raises(ValueError, match="not of this engine"):
        a.inject(Collector(b), 0, b"frame")
    link = Link(a, delay_ps=1)
    link.connect(Collector(b))
    with pytest.raises(RuntimeError, match="cannot be connected to another"):
        link.connect(Collector(clock.add()))


def test_a_partition_does_not_run_by_itself():
    engine = Partitions().add()
    for run in (engine.run, lambda: engine.run_until(5)):
        with pytest.raises(RuntimeError, match="of a partition"):
            run()


def test_an_event_must_not_touch_another_partition():
    net = two_partitions()
    net.engines[0].schedule_at(10, lambda: net.ports[1].enqueue(b"frame"))
    with pytest.raises(RuntimeError, match="uses a component of another"):
        net.clock.run()
    net.engines[0].schedule_at(20, net.clock.run)
    with pytest.raises(RuntimeError, match="within an event"):
        net.clock.run()


@pytest.mark.parametrize("workers", [0, -1, 257])
def test_an_impossible_number_of_workers_is_refused(workers):
    with pytest.raises(ValueError, match="1 to 256"):
        Partitions(workers=workers)
    with pytest.raises(ValueError, match="1 to 256"):
        Partitions().workers = workers


def test_holding_one_engine_keeps_all():
    class Canary:
        def sing(self) -> None:
            raise AssertionError("nobody runs this")

    net = two_partitions()
    canary = Canary()
    alive = weakref.ref(canary)
    engine = net.engines[0]
    net.engines[1].schedule_at(10, canary.sing)
    net.ports[0].enqueue(b"frame")
    del net, canary
    gc.collect()
    engine.schedule_at(5, lambda: None)
    assert (engine.now_ps, alive() is None) == (0, False)
    del engine
    gc.collect()
    assert alive() is None


class Kept:
    """Something that a call keeps alive."""

    def call(self) -> None:
        raise AssertionError("was forgotten")


def test_calls_that_are_forgotten_are_not_made_and_keep_nothing_alive() -> None:
    clock = Partitions(seed=1)
    engine = clock.add()
    kept = Kept()
    gone = weakref.ref(kept)
    clock.schedule_at(10, kept.call)
    clock.forget_scheduled()
    del kept
    assert gone() is None
    seen: list[int] = []
    engine.schedule_at(20, lambda: seen.append(20))
    clock.schedule_at(30, lambda: seen.append(30))
    clock.run()
    assert seen == [20, 30]


def test_calls_are_not_forgotten_within_a_run() -> None:
    clock = Partitions(seed=1)
    clock.schedule_at(10, clock.forget_scheduled)
    with pytest.raises(RuntimeError, match="within a run"):
        clock.run()

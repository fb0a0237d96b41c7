"""A run over several processes: packets pass between them whole, and the outcome is that of one process.

Threads stand for the processes: each has partitions of its own, and queues between them are what MPI is otherwise.
"""

import threading
import weakref
from collections.abc import Callable
from queue import Queue

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_partitions import FRAMES, NS, RELAYS, Net, Relay
from weft.engine import Collector, Link, OtherProcessFailed, Partitions, Timer, _core

PACKETS = st.lists(
    st.tuples(
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**63 - 1),
        st.binary(max_size=3000),
        st.integers(0, 2**20),
        st.booleans(),
        st.booleans(),
        st.integers(0, 255),
        st.integers(0, 255),
    ).map(lambda packet: packet if packet[4] else (*packet[:3], 0, *packet[4:]))
)


@given(PACKETS)
def test_packets_come_out_of_messages_as_they_went_in(packets):
    message = b"".join(map(_core.packet_message, packets))
    assert _core.packets_of_message(message) == packets


@given(PACKETS.filter(len), st.data())
def test_a_message_that_ends_too_early_is_refused(packets, data):
    message = b"".join(map(_core.packet_message, packets))
    ends = {0}
    for packet in packets:
        ends.add(max(ends) + len(_core.packet_message(packet)))
    cut = data.draw(st.integers(0, len(message) - 1).filter(lambda at: at not in ends))
    with pytest.raises(ValueError, match="too early"):
        _core.packets_of_message(message[:cut])


@given(st.binary(max_size=100))
def test_any_bytes_are_packets_or_refused(message):
    try:
        packets = _core.packets_of_message(message)
    except ValueError:
        return
    assert _core.packets_of_message(b"".join(map(_core.packet_message, packets))) == packets


def in_processes(count: int, run: Callable[[int, Callable[[list[bytes]], list[bytes]]], object]) -> list[object]:
    """Return what `run(process, exchange)` returns in each of as many threads."""
    queues = [[Queue() for _ in range(count)] for _ in range(count)]
    results: list[object] = [None] * count
    errors: list[BaseException] = []

    def one(process: int) -> None:
        def exchange(messages: list[bytes]) -> list[bytes]:
            for other in range(count):
                queues[process][other].put(messages[other])
            return [queues[other][process].get(timeout=20) for other in range(count)]

        try:
            results[process] = run(process, exchange)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(process,)) for process in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def outcome_of_served(net: Net, process: int) -> dict[tuple[str, int], object]:
    """Return what the partitions of a process have counted."""
    net.clock.agree_on_links()
    served = [net.clock.process_of(engine) == process for engine in net.engines]
    found: dict[tuple[str, int], object] = {("now", 0): net.clock.now_ps}
    for number, collector in enumerate(net.collectors):
        if served[net.collected_in[number]]:
            found["collector", number] = collector.packets
    for number, relay in enumerate(net.relays):
        if served[relay.partition]:
            found["port", number] = net.ports[number].stats()
            found["link", number] = net.links[number].stats()
    return found


def built(relays: list[Relay], workers: int, errors: float = 0.0) -> Net:
    net = Net.parted(relays, 5, workers)
    ends = [n for n, relay in enumerate(relays) if relay.onward == 0 or n + relay.onward >= len(relays)]
    net.collected_in = [(relays[number].partition + 1) % 5 for number in ends]
    for link in net.links if errors else ():
        link.set_faults(bit_error_rate=errors)
    return net


@settings(max_examples=25, deadline=None)
@given(RELAYS, FRAMES, st.lists(st.integers(1, 2000 * NS), max_size=4), st.integers(1, 4), st.integers(1, 2))
def test_processes_do_what_one_does(relays, frames, cuts_ps, count, workers):
    frames = [(relay % len(relays), time_ps, size) for relay, time_ps, size in frames]

    def run(process, exchange):
        net = built(relays, workers, errors=1e-5)
        if exchange is not None:
            net.clock.distribute(process, count, exchange)
        net.inject(frames)
        balances = []
        for time_ps in sorted(cuts_ps):
            net.clock.run_until(time_ps)
            balances.append(net.clock.packet_conservation())
        net.clock.run()
        return balances, net.clock.packet_conservation(), outcome_of_served(net, process)

    balances, last, outcome = run(0, None)
    together = {}
    for each_balances, each_last, each_outcome in in_processes(count, run):
        assert each_balances == balances
        assert each_last == last
        assert each_outcome.items() <= outcome.items()
        together |= each_outcome
    assert together == outcome


def test_what_an_event_hands_over_is_called_in_all_processes():
    def run(process, exchange):
        clock = Partitions(seed=1)
        engines = [clock.add() for _ in range(4)]
        collectors = [Collector(engine) for engine in engines]
        links = [Link(engines[n], delay_ps=500 * NS) for n in range(4)]
        for n in range(4):
            links[n].connect(collectors[(n + 1) % 4])
        executors = [_core.ScheduleExecutor(engine) for engine in engines]
        clock.distribute(process, 2, exchange)
        heard = []
        own_clock = weakref.proxy(clock)  # a listener that held it would keep it, and all engines, for good
        for n, executor in enumerate(executors):
            executor.set_end_listener(lambda n=n: heard.append((n, own_clock.now_ps)))
            if clock.process_of(engines[n]) == process:
                schedule = _core.Schedule()
                schedule.add_delay((3 - n) * 100 * NS + 7)
                executor.start(schedule, 0, run=1)
        clock.run()
        return heard

    one, other = in_processes(2, run)
    assert one == other
    assert one == [(n, (3 - n) * 100 * NS + 7 + 500 * NS) for n in (3, 2, 1, 0)]


def test_processes_that_do_different_things_are_refused():
    def run(process, exchange):
        clock = Partitions(seed=1)
        for _ in range(2):
            clock.add()
        clock.distribute(process, 2, exchange)
        clock.schedule_at(100 + process, lambda: None)
        with pytest.raises(RuntimeError, match="no longer do the same"):
            clock.run()

    in_processes(2, run)


def test_a_run_is_distributed_once_and_before_it_begins():
    clock = Partitions()
    clock.add()
    with pytest.raises(ValueError, match="process 2 of 2"):
        clock.distribute(2, 2, lambda messages: messages)
    clock.distribute(0, 1, lambda messages: messages)
    with pytest.raises(RuntimeError, match="once"):
        clock.distribute(0, 1, lambda messages: messages)
    with pytest.raises(RuntimeError, match="keeps its partitions"):
        clock.add()
    with pytest.raises(RuntimeError, match="keeps its number of workers"):
        clock.workers = 2


def test_what_an_event_raises_ends_the_run_in_all_processes():
    def run(process, exchange):
        clock = Partitions()
        engines = [clock.add() for _ in range(4)]
        clock.distribute(process, 2, exchange)

        def fail():
            raise KeyError(f"in process {process}")

        failing = clock.process_of(engines[3])
        timers = [Timer(engine, fail) for engine in engines]
        for number, engine in enumerate(engines):
            if clock.process_of(engine) == process:
                timers[number].arm(700 if number == 3 else 800)
        try:
            clock.run()
        except (KeyError, OtherProcessFailed) as error:
            return failing, str(error)

    failing = in_processes(2, run)[0][0]
    said = [f"process {failing} has failed"] * 2
    said[failing] = f"'in process {failing}'"
    assert [text for _, text in in_processes(2, run)] == said

"""Every fate that the network may have in store for a connection of MRC, as far as small windows go.

The first frames of either end, of data, SACKs, NACKs, probes and updates of ports alike, meet every combination of
fates: they are delivered, lost, doubled, overtaken, trimmed or marked; meanwhile a port of either end may go down, at
any of these frames, and stay down or come up again. From there on the network loses nothing, and all must be well:
messages have arrived, each once and in order, and every entropy value is in use again. What the entropy values
themselves may go through is explored as states, not as sequences: all that can be reached.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.transport.rdma_pair import PATIENT, US, fixed_window, random_bytes
from tests.transport.test_mrc_queue_pair import MTU, is_write, marked, trimmed
from weft.engine import Collector, CompletionQueue, Engine, EvTable, Link, MrcQueuePair, Nic, TransmitPort

PLANES = 2
FATES = ("deliver", "drop", "duplicate", "hold", "trim", "mark")


@dataclass
class End:
    """A host with a port in each plane; what it sends is collected."""

    nic: Nic
    taps: list[Collector]
    completions: CompletionQueue
    queue_pair: Any = field(init=False)


class Pair:
    """Two hosts, one queue pair over two planes; every microsecond the network decides on what was sent since.

    `change` is (frame, end, plane): that port goes down at the frame, and is up again `pause` frames later, if so.
    """

    def __init__(self, fates: Iterable[str], change: tuple[int, int, int] | None, pause: int | None) -> None:
        self.engine = Engine(seed=1)
        self._fates, self._change, self._pause = list(fates), change, pause
        self._seen = 0
        self._held: dict[tuple[int, int], list[bytes]] = {}
        self.down: set[int] = set()
        self.ends = [self._end(index) for index in range(2)]
        for index, end in enumerate(self.ends):
            ends = [(plane, f"02:00:00:00:{plane:02x}:{1 - index:02x}", f"fd0{plane}::{2 - index}") for plane in (0, 1)]
            end.queue_pair = MrcQueuePair(
                end.nic,
                0,
                end.completions,
                queue_pair=0x100 + index,
                remote_queue_pair=0x101 - index,
                destination_mac=ends[0][1],
                destination_ip=ends[0][2],
                more_planes=ends[1:],
                congestion_control=fixed_window(4 * (MTU + 100)),
                mrc_options={"ev_count": 4, "ev_backups": 2, "probe_interval_ps": 20 * US},
                path_mtu_bytes=MTU,
                retransmission_timeout_ps=30 * US,
                reordering_window_ps=3 * US,
                **PATIENT,
            )

    def _end(self, index: int) -> End:
        nic, taps = Nic(self.engine, f"h{index}"), []
        for plane in range(PLANES):
            link = Link(self.engine, name=f"{index}-{plane}")
            port = TransmitPort(self.engine, link, rate_bps=10**11)
            nic.add_port(port, mac=f"02:00:00:00:{plane:02x}:{index:02x}", addresses=[f"fd0{plane}::{index + 1}"])
            taps.append(Collector(self.engine))
            link.connect(taps[-1])
        return End(nic, taps, CompletionQueue(self.engine))

    def _set_port(self, end: int, plane: int, up: bool) -> None:
        self.down = self.down - {plane} if up else self.down | {plane}
        self.ends[end].nic.set_port_up(plane, up)

    def _follow_change(self) -> None:
        if self._change is None:
            return
        frame, end, plane = self._change
        if self._seen == frame:
            self._set_port(end, plane, False)
        if self._pause is not None and self._seen == frame + self._pause:
            self._set_port(end, plane, True)

    def _arriving(self, way: tuple[int, int], frame: bytes) -> list[bytes]:
        self._follow_change()
        fate = self._fates[self._seen] if self._seen < len(self._fates) else "deliver"
        self._seen += 1
        if fate == "drop" or way[1] in self.down:
            return []
        if fate == "hold":
            self._held.setdefault(way, []).append(frame)
            return []
        if fate == "trim" and is_write(frame):
            return [trimmed(frame)]
        if fate == "mark":
            frame = marked(frame)
        return [frame, *self._held.pop(way, []), *([frame] if fate == "duplicate" else [])]

    def step(self) -> None:
        self.engine.run_for(US)
        for sender, plane in product(range(2), range(PLANES)):
            tap = self.ends[sender].taps[plane]
            frames = [data for _, _, data in tap.packets]
            tap.clear()
            for frame in frames:
                for each in self._arriving((sender, plane), frame):
                    self.engine.inject(self.ends[1 - sender].nic, plane, each)

    def heal(self) -> None:
        """Bring all ports up; nothing is lost any more."""
        self._fates, self._change = [], None
        for end, plane in product(range(2), range(PLANES)):
            self._set_port(end, plane, True)

    def send(self, sizes: list[int], first: int = 0) -> tuple[Any, Any]:
        source, target = random_bytes(sum(sizes), 1), np.zeros(sum(sizes), np.uint8)
        region = self.ends[0].nic.register_memory(source)
        rkey = self.ends[1].nic.register_memory(target).rkey
        offset = 0
        for number, size in enumerate(sizes, first):
            self.ends[0].queue_pair.post_write(region, offset, size, offset, rkey, immediate=number, work_id=number)
            offset += size
        return source, target

    def run_until_sent(self, messages: int, limit_steps: int = 4000) -> None:
        done: list[int] = []
        for _ in range(limit_steps):
            done += [each["work_id"] for each in self.ends[0].completions.poll()]
            if len(done) == messages:
                return
            self.step()
        raise AssertionError(f"stuck after {done}: {self.ends[0].queue_pair.stats()}")


def check(fates: Iterable[str], change: tuple[int, int, int] | None = None, pause: int | None = None) -> None:
    pair = Pair(fates, change, pause)
    sizes = [3 * MTU, 1]
    source, target = pair.send(sizes)
    pair.run_until_sent(len(sizes))
    assert np.array_equal(source, target)
    arrived = pair.ends[1].completions.poll()
    assert [each["immediate"] for each in arrived] == list(range(len(sizes)))
    assert pair.ends[1].queue_pair.stats()["data_bytes_received"] == sum(sizes)
    pair.heal()
    for _ in range(2000):
        if [end.queue_pair.planes_up() for end in pair.ends] == [[True, True]] * 2:
            break
        pair.step()
    for number in range(40):
        if not any(each["state"] == "assumed_bad" for end in pair.ends for each in end.queue_pair.evs()):
            break
        pair.send([40 * MTU], first=2 + number)
        pair.run_until_sent(1)
    states = [each["state"] for end in pair.ends for each in end.queue_pair.evs()]
    assert "assumed_bad" not in states
    assert "denied" not in states
    assert [end.queue_pair.planes_up() for end in pair.ends] == [[True, True]] * 2
    stats = pair.ends[0].queue_pair.stats()
    assert stats["in_flight_bytes"] == stats["outstanding_requests"] == 0


@pytest.mark.parametrize("length", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_all_fates_of_the_first_frames(length: int) -> None:
    for fates in product(FATES, repeat=length):
        check(fates)


@pytest.mark.parametrize("length", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_all_fates_while_a_port_goes_down(length: int) -> None:
    for fates in product(FATES, repeat=length):
        for frame, end, plane, pause in product(range(4), range(2), range(PLANES), (None, 1, 3)):
            check(fates, (frame, end, plane), pause)


@dataclass(frozen=True)
class EvEvent:
    """What may happen to an entropy value, or to a plane."""

    name: str
    number: int = 0
    flag: bool = False

    def __call__(self, table: EvTable) -> None:
        if self.name == "next":
            table.next(self.number)
        elif self.name in ("on_probe_answer", "set_up"):
            getattr(table, self.name)(self.number, self.flag)
        else:
            getattr(table, self.name)(self.number)


def ev_events(evs: int, planes: int) -> Iterator[EvEvent]:
    for ev in range(evs):
        yield from (EvEvent("on_congestion", ev), EvEvent("on_failure", ev))
        yield from (EvEvent("on_probe_answer", ev, flag) for flag in (False, True))
        yield from (EvEvent("deny", ev), EvEvent("allow", ev))
        if ev < evs // planes:  # planes are alike
            yield EvEvent("on_proof", ev)
    for plane in range(planes):
        yield EvEvent("next", plane)
        yield from (EvEvent("set_up", plane, flag) for flag in (False, True))


Ports = tuple[bool, ...]
Proven = int | None
State = tuple[tuple[tuple[str, bool], ...], Ports, Proven]
"""Of each entropy value, of each plane's port, and which entropy value of plane 0 was proven last."""


def state_of(table: EvTable, ports: Ports, proven: Proven) -> State:
    return tuple((each["state"], each["active"]) for each in table.evs()), ports, proven


def proven_after(state: State, event: EvEvent) -> Proven:
    """A proof counts unless its entropy value has been taken for dead, or denied, since it was probed."""
    evs, _, proven = state
    if event.name != "on_proof" or evs[event.number][0] not in ("good", "skip"):
        return proven
    return event.number


def ports_after(ports: Ports, event: EvEvent) -> Ports:
    if event.name != "set_up":
        return ports
    return tuple(event.flag if plane == event.number else up for plane, up in enumerate(ports))


def table_after(events: Iterable[EvEvent]) -> EvTable:
    table = EvTable(2, 2, 2, 7)
    for event in events:
        event(table)
    return table


def check_state(way: tuple[EvEvent, ...], ports: Ports, proven: Proven) -> None:
    """Whatever has happened, packets take the right entropy values, and healed paths are used again."""
    table = table_after(way)
    evs = table.evs()
    for plane, up in enumerate(ports):
        own = [(ev, each) for ev, each in enumerate(evs) if each["plane"] == plane]
        allowed = [ev for ev, each in own if each["state"] != "denied"]
        works = [ev for ev, each in own if each["state"] in ("good", "skip")]
        assert sum(each["active"] for _, each in own) == min(1, len(works))
        chosen = table_after(way).next(plane)
        assert (chosen is None) == (not allowed)
        assert chosen is None or chosen in (works or allowed)
        back = table_after(way).next_reverse(plane)
        assert back == (proven if proven in works else chosen)
        usable = [
            up and bool([each for each in evs if each["plane"] == other and each["active"]])
            for other, up in enumerate(ports)
        ]
        assert table.may_use(plane) == (usable[plane] or (not any(usable) and (up or not any(ports))))
    to_probe = [ev for ev, each in enumerate(evs) if each["state"] in ("good", "skip") and ports[each["plane"]]]
    drawn = table_after(way).drawn()
    assert drawn in to_probe if to_probe else drawn is None
    for ev, each in enumerate(evs):
        if each["state"] == "assumed_bad":
            table.on_probe_answer(ev)
    denied = [each["state"] == "denied" for each in evs]
    assert [each["state"] == "denied" for each in table.evs()] == denied
    assert all(each["state"] in ("good", "skip", "denied") for each in table.evs())


def test_all_states_of_entropy_values() -> None:
    """Two planes of an active entropy value and a backup each, whatever happens in whatever order."""
    events = list(ev_events(4, 2))
    first = state_of(table_after(()), (True, True), None)
    known: dict[State, tuple[EvEvent, ...]] = {first: ()}
    left = deque([first])
    while left:
        state = left.popleft()
        way = known[state]
        check_state(way, *state[1:])
        for event in events:
            after = state_of(table_after((*way, event)), ports_after(state[1], event), proven_after(state, event))
            if after not in known:
                known[after] = (*way, event)
                left.append(after)
    # Of a plane: which entropy value is active if any is good, each in one of four states, its port, what was proven.
    assert len(known) > 3000
    assert {name for state, *_ in known for name, _ in state} == {"good", "skip", "assumed_bad", "denied"}

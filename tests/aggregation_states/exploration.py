"""All states that a reduction can reach, whatever the network does with its packets.

**The network** may deliver any packet that was ever sent, at any time, in any order, as often as it likes, or never.
So a state is what the switches' slots hold, what the workers have, and which packets have been sent; loss, duplication
and reordering have no bounds.

**The workers** follow the client's rules (docs/spec/aggregation.md): message m goes to slot m mod slot_count when the
result of m - slot_count is there, and messages begin in order. A worker sends a message as soon as it may. The network
may hold the packet back as long as it likes, so that sending later, or again, reaches no further state.

**A new epoch** may begin in any state: the controller writes the switches' tables one by one, in any order, and all
workers agree on the first message that one of them has no result of, and go on from there in round 0. That this is one
transition is no restriction: the network may hold back what goes to or comes from any of them. Several may follow each
other, over the same switches or those of another plane: each switch is written in their order, workers may leave out
epochs that another failure has overtaken, and neither waits for the other.

The lanes of a contribution say whose it is, of which message and of which reduction, in digits that sums cannot carry
between. So any sum but the right one of all workers is noticed.

**An end can be reached** from a state if it can with a network that has lost every packet: others only add to what may
happen. Then the workers' timeouts are all that goes on, so a state from which they, and a network that now loses
nothing, come to the end has a way there; one from which they do not is a deadlock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.aggregation_states.real_switches import Cells, Epoch, Node, Sent
from weft.engine import _core

_DIGIT_BITS = 8


class State(NamedTuple):
    """Everything: the present life of the job, what it began with, and what all hold."""

    life: int
    """The epoch in which the workers are; 0 is the first."""
    base: int
    """The message that was the first of this life."""
    written: tuple[int, ...]
    """Of each switch, the epoch whose tables it has."""
    slots: tuple[int, ...]
    """Of each switch, the number of what its registers hold."""
    results: tuple[int, ...]
    """Of each worker, bits of the messages that it has results of."""
    sent: int
    """Bits of the packets that have been sent."""


class WrongEndError(AssertionError):
    """A worker has accepted a wrong sum; the message has the way there."""


class DeadlockError(AssertionError):
    """A state from which there is no way to the end."""


@dataclass(frozen=True)
class Explored:
    """How far an exploration has gone: all states, how often workers ended, and how often a program was run."""

    states: int
    transitions: int
    ends: int
    packets: int
    program_runs: int


class Exploration:
    """The states of a job whose workers reduce `messages` messages.

    `later` are lives that may follow the first. With `new_reduction` their workers begin another reduction, as they do
    when one of them has died; otherwise they go on with this one.
    """

    def __init__(self, first: Epoch, messages: int, *later: Epoch, new_reduction: bool = False) -> None:
        self._lives = [first, *later]
        self._messages = messages
        self._new_reduction = new_reduction
        self._names = tuple(dict.fromkeys(name for life in self._lives for name in life.nodes))
        self._place = {name: place for place, name in enumerate(self._names)}
        self._workers = tuple(first.memberships)
        self._held: list[Cells] = []
        self._numbers: dict[Cells, int] = {}
        self._packets: list[Sent] = []
        self._packet_numbers: dict[Sent, int] = {}
        self._came_from: dict[State, tuple[State | None, str | Sent]] = {}
        self._effects: dict[tuple[Node, int, int], tuple[int, int]] = {}
        self._contributions: dict[tuple[int, int, int, int], int] = {}
        self._read: dict[bytes, tuple[int, int, int, tuple[int, ...]]] = {}
        self._transitions = 0

    # ---- numbers of what states are made of

    def _held_number(self, cells: Cells) -> int:
        if cells not in self._numbers:
            self._numbers[cells] = len(self._held)
            self._held.append(cells)
        return self._numbers[cells]

    def _packet_bit(self, packet: Sent) -> int:
        if packet not in self._packet_numbers:
            self._packet_numbers[packet] = len(self._packets)
            self._packets.append(packet)
        return 1 << self._packet_numbers[packet]

    # ---- workers

    def _taking_part(self, life: int) -> list[int]:
        return [at for at, name in enumerate(self._workers) if name in self._lives[life].memberships]

    def _is_done(self, state: State) -> bool:
        whole = (1 << self._messages) - 1
        return all(state.results[worker] == whole for worker in self._taking_part(state.life))

    def _begun(self, life: int, base: int, results: int) -> list[int]:
        """Return the messages of this life that a worker with these results has begun, in order."""
        slots, begun = self._lives[life].slot_count, []
        for message in range(base, self._messages):
            before = message - slots
            if before >= base and not results >> before & 1:
                break
            begun.append(message)
        return begun

    def _lanes(self, life: int, worker: int, message: int) -> tuple[int, int]:
        other = self._messages if life and self._new_reduction else 0
        return 1 << _DIGIT_BITS * worker, message + 1 + other << _DIGIT_BITS * worker

    def _right(self, life: int, message: int) -> tuple[int, ...]:
        of_each = [self._lanes(life, worker, message) for worker in self._taking_part(life)]
        return tuple(map(sum, zip(*of_each, strict=True)))

    def _contribution(self, life: int, base: int, worker: int, message: int) -> int:
        known = (life, base, worker, message)
        if known not in self._contributions:
            here = self._lives[life]
            round_number, slot = divmod(message - base, here.slot_count)
            packet = here.contribution(self._workers[worker], slot, round_number, self._lanes(life, worker, message))
            self._contributions[known] = self._packet_bit(packet)
        return self._contributions[known]

    def _sent_by(self, life: int, base: int, worker: int, results: int) -> int:
        sent = 0
        for message in self._begun(life, base, results):
            sent |= self._contribution(life, base, worker, message)
        return sent

    def _accepts(self, state: State, worker: int, frame: bytes) -> int | None:
        """Return the message whose result a worker accepts a packet for. Raises WrongEndError for a wrong sum."""
        here = self._lives[state.life]
        name = self._workers[worker]
        if name not in here.memberships:
            return None
        if frame not in self._read:
            headers, payload = _core.parse_packet(frame)
            about = headers["aggregation"]
            lanes = tuple(int.from_bytes(payload[at : at + 4], "big", signed=True) for at in range(0, len(payload), 4))
            self._read[frame] = (about["epoch"], about["slot"], about["round"], lanes)
            assert (headers["deth"]["q_key"], about["epoch"]) in {
                (life.memberships[each].q_key, life.memberships[each].epoch)
                for life in self._lives
                for each in life.memberships
            }
        epoch, slot, round_number, lanes = self._read[frame]
        if epoch != here.memberships[name].epoch:
            return None
        message = state.base + round_number * here.slot_count + slot
        results = state.results[worker]
        if results >> message & 1 or message not in self._begun(state.life, state.base, results):
            return None
        right = self._right(state.life, message)
        if lanes[: len(right)] != right or any(lanes[len(right) :]):
            raise WrongEndError(f"{name} accepts {lanes[: len(right)]} for message {message}, not {right}")
        return message

    # ---- transitions

    def _start(self) -> State:
        cells = {name: len(life.nodes[name].cells) for life in self._lives for name in life.nodes}
        slots = tuple(self._held_number((0,) * cells[name]) for name in self._names)
        none = (0,) * len(self._workers)
        sent = 0
        for worker in self._taking_part(0):
            sent |= self._sent_by(0, 0, worker, 0)
        return State(0, 0, (0,) * len(self._names), slots, none, sent)

    def _deliver(self, state: State, number: int) -> State | None:
        """Return the state after a packet has been delivered; None if nothing has changed."""
        node, _, frame = self._packets[number]
        if node not in self._place:
            if node not in self._workers:
                return None
            worker = self._workers.index(node)
            message = self._accepts(state, worker, frame)
            return None if message is None else self._with_result(state, worker, message)
        place = self._place[node]
        life = self._lives[state.written[place]]
        if node not in life.nodes:
            return None  # it is no node of this life's tree: the packet ends there
        held = state.slots[place]
        after, outputs = self._effect(life.nodes[node], held, number)
        sent = state.sent | outputs
        if after == held and sent == state.sent:
            return None
        return state._replace(slots=(*state.slots[:place], after, *state.slots[place + 1 :]), sent=sent)

    def _effect(self, node: Node, held: int, number: int) -> tuple[int, int]:
        """Return what a switch holds after a packet, and the bits of what it sends."""
        known = self._effects.get((node, held, number))
        if known is None:
            _, port, frame = self._packets[number]
            after, outputs = node.take(self._held[held], port, frame)
            bits = 0
            for output in outputs:
                bits |= self._packet_bit(output)
            known = self._effects[node, held, number] = (self._held_number(after), bits)
        return known

    def _with_result(self, state: State, worker: int, message: int) -> State:
        of_worker = state.results[worker] | 1 << message
        results = (*state.results[:worker], of_worker, *state.results[worker + 1 :])
        sent = state.sent | self._sent_by(state.life, state.base, worker, of_worker)
        return state._replace(results=results, sent=sent)

    def _go_on(self, state: State, life: int) -> State:
        """Return the state after the workers have agreed where to go on, in a new epoch."""
        taking_part = self._taking_part(life)
        results, base = list(state.results), 0
        if self._new_reduction:
            results = [0] * len(results)
        else:
            while all(results[worker] >> base & 1 for worker in taking_part):
                base += 1
            # Those that have results take them again.
            results = [each & (1 << base) - 1 for each in results]
        sent = state.sent
        for worker in taking_part:
            sent |= self._sent_by(life, base, worker, results[worker])
        return state._replace(life=life, base=base, results=tuple(results), sent=sent)

    def _next(self, state: State) -> Iterator[tuple[State, str | Sent]]:
        last = len(self._lives) - 1
        for place, name in enumerate(self._names):
            if (has := state.written[place]) < last:
                written = (*state.written[:place], has + 1, *state.written[place + 1 :])
                yield state._replace(written=written), f"{name} is written for life {has + 1}"
        if state.life < last and not self._is_done(state):
            for life in range(state.life + 1, last + 1):
                yield self._go_on(state, life), f"the workers go on in life {life}"
        left = state.sent
        while left:
            bit = left & -left
            left ^= bit
            number = bit.bit_length() - 1
            if (after := self._deliver(state, number)) is not None:
                yield after, self._packets[number]

    # ---- the search

    def explore(self, limit: int) -> Explored:
        """Look at all states, breadth first.

        Raises:
            WrongEndError: a worker accepts a wrong sum. DeadlockError: a state has no way to an end. ValueError: there
                are more states than the limit.
        """
        start = self._start()
        self._came_from = {start: (None, "")}
        pending, ends = deque([start]), 0
        while pending:
            state = pending.popleft()
            ends += self._is_done(state)
            try:
                for after, how in self._next(state):
                    self._transitions += 1
                    if after not in self._came_from:
                        self._came_from[after] = (state, how)
                        pending.append(after)
            except WrongEndError as error:
                raise WrongEndError(f"{error}; the way there: {self._way_to(state)}") from None
            if len(self._came_from) > limit:
                raise ValueError(f"more than {limit} states")
        self._require_ways_to_the_end()
        runs = sum(node.runs for life in self._lives for node in life.nodes.values())
        return Explored(len(self._came_from), self._transitions, ends, len(self._packets), runs)

    def _require_ways_to_the_end(self) -> None:
        live: set[State] = set()
        for state in self._came_from:
            way: list[State] = []
            # Whoever is to write and to go on does so at last.
            at = state._replace(sent=0)
            while at not in live and not (self._is_done(at) and at.life == len(self._lives) - 1):
                if at in way:
                    raise DeadlockError(f"no way to the end; the way there: {self._way_to(state)}")
                way.append(at)
                at = self._after_timeouts(at)
            live.update(way)

    def _after_timeouts(self, state: State) -> State:
        """Return the state after every worker has sent again what it has no result of, and nothing was lost."""
        last = len(self._lives) - 1
        state = state._replace(written=(last,) * len(self._names))
        state = state if state.life == last else self._go_on(state, last)
        for worker in self._taking_part(state.life):
            for message in self._begun(state.life, state.base, state.results[worker]):
                if not state.results[worker] >> message & 1:
                    bit = self._contribution(state.life, state.base, worker, message)
                    state = self._deliver_all(state._replace(sent=0), bit)
        return state._replace(sent=0)

    def _deliver_all(self, state: State, sent: int) -> State:
        """Return the state after packets, and what follows from them, have been delivered once each."""
        while sent:
            bit = sent & -sent
            sent ^= bit
            after = self._deliver(state._replace(sent=0), bit.bit_length() - 1)
            if after is not None:
                sent |= after.sent
                state = after
        return state._replace(sent=0)

    # ---- for errors

    def _shown(self, packet: Sent) -> str:
        about = _core.parse_packet(packet[2])[0]["aggregation"]
        what = "result" if about["kind"] else f"contribution of rank {about['rank']}"
        return f"{what}, epoch {about['epoch']} slot {about['slot']} round {about['round']}, to {packet[0]}"

    def _way_to(self, state: State) -> str:
        steps: list[str] = []
        at: State | None = state
        while at is not None:
            at, how = self._came_from[at]
            steps.append(how if isinstance(how, str) else self._shown(how))
        return "; ".join(reversed([step for step in steps if step])) or "the start"

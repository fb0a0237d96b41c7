"""All states that two ends of a connection can reach, whatever the network does with their messages.

The network may deliver any message that was ever sent, at any time, in any order, as often as it likes, or never; so a
state is what both ends hold, and which messages have been sent. Programs may accept, refuse, confirm, disconnect and
destroy whenever their connection's state allows it. Time passes in one way: an end hears nothing until it gives up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.verbs.cm_ends import GIDS, QPNS, SERVICE, End, other

GIVES_UP_AFTER = 64
"""More deadlines than any state has retries."""


@dataclass(frozen=True)
class World:
    """Both ends, and every message that was ever sent to each."""

    ends: tuple[End, End]
    sent: frozenset[tuple[str, bytes]]

    def key(self) -> tuple[object, ...]:
        of_ends = []
        for end in self.ends:
            known = end.connections.connection(end.id)
            facts = () if known is None else tuple(sorted(known.items()))
            of_ends.append((end.id, end.events, facts, len(end.connections)))
        return (*of_ends, self.sent)


def start() -> World:
    ends = End.new("a"), End.new("b")
    ends[0].id = ends[0].connections.connect(
        0, local=GIDS["a"], remote=GIDS["b"], service_id=SERVICE, qpn=QPNS["a"], starting_psn=100
    )
    return settled(World(ends, frozenset()))


def settled(world: World) -> World:
    """Take events and messages."""
    sent = set(world.sent)
    for end in world.ends:
        for kind, number, _ in end.take_events():
            if kind == "req_received" and number != end.id:
                end.connections.destroy(0, number)  # a request that the network has repeated after its connection's end
        sent |= {(other(end.name), mad) for _, _, _, mad in end.connections.take_outgoing()}
    return replace(world, sent=frozenset(sent))


def changed(world: World, at: int) -> tuple[World, End]:
    """Return a copy of the world, and the end of it that is to act."""
    ends = tuple(end.copy() for end in world.ends)
    return World((ends[0], ends[1]), world.sent), ends[at]


def calls(end: End) -> Iterator[str]:
    yield from {
        "req_received": ("accept", "reject", "destroy"),
        "rep_received": ("confirm", "reject", "destroy"),
        "established": ("disconnect", "destroy"),
        "dreq_received": ("answer_disconnect", "destroy"),
        "rep_sent": ("destroy", "establish"),
    }.get(end.state, ("destroy",) if end.state != "gone" else ())


def successors(world: World) -> Iterator[tuple[str, World]]:
    for at, end in enumerate(world.ends):
        for call in calls(end) if end.id else ():
            after, acting = changed(world, at)
            function = getattr(acting.connections, call)
            result = (
                function(0, acting.id, qpn=QPNS["b"], starting_psn=200) if call == "accept" else function(0, acting.id)
            )
            assert not result, (call, end.state, result)
            yield f"{end.name} {call}", settled(after)
        if end.connections.next_deadline_ps is not None:
            after, acting = changed(world, at)
            for _ in range(GIVES_UP_AFTER):
                deadline = acting.connections.next_deadline_ps
                if deadline is None or acting.take_events():
                    break
                acting.connections.advance(deadline)
                if (known := acting.connections.connection(acting.id)) is None or known["state"] != end.state:
                    break
            yield f"{end.name} gives up", settled(after)
    for name, mad in sorted(world.sent):
        at = "ab".index(name)
        after, acting = changed(world, at)
        acting.receive(0, mad)
        yield f"{name} receives", settled(after)


def check(world: World, way: tuple[str, ...]) -> None:
    a, b = world.ends
    place = f"after {', '.join(way)}: {a.state} {a.events}, {b.state} {b.events}"
    # Nobody is connected without the other's consent.
    if b.events.count("rtu_received"):
        assert "a confirm" in way or "b establish" in way, place
    if a.state == "established":
        assert "b accept" in way, place
        known = a.connections.connection(a.id)
        assert known, place
        assert (known["remote_qpn"], known["send_psn"]) == (QPNS["b"], 200), place
    # A program hears of each step once.
    for end in world.ends:
        for kind in ("rep_received", "rtu_received", "rej_received", "drep_received", "time_wait_over"):
            assert end.events.count(kind) <= 1, place
        assert len([kind for kind in end.events if kind.startswith(("dreq", "drep"))]) <= 1, place


def forgets(world: World) -> bool:
    """Return whether both ends forget everything if the programs end and the network delivers nothing."""
    for at in (0, 1):
        _, end = changed(world, at)
        if end.id:
            end.connections.destroy(0, end.id)
        for _ in range(4 * GIVES_UP_AFTER):
            deadline = end.connections.next_deadline_ps
            if deadline is None:
                break
            end.connections.advance(deadline)
        if len(end.connections):
            return False
    return True


def explore(limit: int) -> int:
    first = start()
    ways: dict[tuple[object, ...], tuple[str, ...]] = {first.key(): ()}
    pending = deque([first])
    while pending:
        world = pending.popleft()
        way = ways[world.key()]
        check(world, way)
        assert forgets(world), way
        if len(way) >= limit:
            continue
        for how, after in successors(world):
            if after.key() not in ways:
                ways[after.key()] = (*way, how)
                pending.append(after)
    return len(ways)


def test_every_state_within_ten_steps_is_sound() -> None:
    assert explore(10) > 2000

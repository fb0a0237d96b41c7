"""INT stacks as states of switches' ports: the time, the queue and the bytes sent that each hop has stamped.

Two stamps of one port are two states of it (`weft.controller.noise.rates`). Whose packets they were does not matter, so
stacks of all connections count together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from weft.controller.fabric import FabricController
from weft.controller.failures import Failures
from weft.controller.noise.rates import PortQueue
from weft.quantities.units import PS_PER_NS
from weft.topologies import Endpoint
from weft.wire.headers.int_shim import INT_HOP

_TIME, _SENT, _QUEUE = (INT_HOP.field(name) for name in ("timestamp_ns", "tx_units", "queue_cells"))
_TIME_NS = 1 << _TIME.bits
_SENT_UNITS = 1 << _SENT.bits
_MOST_PATHS = 65_536


@dataclass(frozen=True)
class Stack:
    """The latest INT stack of a connection.

    Attributes:
        source: port of the sending host.
        destination: name of the receiving host.
        path_id: XOR of the ids of the switches.
        hops: time in ns, queue in cells and bytes sent in units of INT's header of each hop, in their order.

    """

    source: Endpoint
    destination: str
    path_id: int
    hops: tuple[tuple[int, int, int], ...]


class IntStamps:
    """Turns stacks into pairs of states of ports; paths follow the present routes."""

    def __init__(self, controller: FabricController) -> None:
        self._controller = controller
        self._around: Failures | None = None
        self._ports: dict[tuple[str, str, int, int, int], tuple[Endpoint, ...]] = {}

    async def pairs(
        self, stacks: Iterable[Stack], now_ps: int
    ) -> Mapping[Endpoint, Sequence[tuple[PortQueue, PortQueue]]]:
        """Return successive states of each port of which two or more stacks tell, in order of time.

        Stacks of unknown paths are left out, and hops between switches with several links.
        """
        if self._controller.routed_around != self._around or len(self._ports) > _MOST_PATHS:
            self._around = self._controller.routed_around
            self._ports.clear()
        states: dict[Endpoint, dict[int, PortQueue]] = {}
        for stack in stacks:
            for end, hop in zip(await self._path_of(stack), stack.hops, strict=False):
                state = _state(hop, now_ps)
                states.setdefault(end, {})[state.time_ps] = state
        return {
            end: [_in_order(*each) for each in pairwise(by_time[time_ps] for time_ps in sorted(by_time))]
            for end, by_time in states.items()
            if len(by_time) > 1
        }

    async def _path_of(self, stack: Stack) -> tuple[Endpoint, ...]:
        fabric = self._controller.fabric
        first, last = (fabric.host(name).nics[stack.source.port] for name in (stack.source.node, stack.destination))
        key = (first.switch, last.switch, last.switch_port, stack.path_id, len(stack.hops))
        if key not in self._ports:
            planned = await self._controller.planned_paths(first.plane)
            found = planned.with_id(first.switch, last.switch, stack.path_id, len(stack.hops)).switches
            self._ports[key] = self._ports_along(found, Endpoint(last.switch, last.switch_port))
        return self._ports[key]

    def _ports_along(self, switches: Sequence[str], last: Endpoint) -> tuple[Endpoint, ...]:
        ports = []
        for here, following in pairwise(switches):
            links = self._controller.fabric.links_between(here, following)
            if len(links) > 1:
                return ()
            ports += [end for end in (links[0].a, links[0].b) if end.node == here]
        return (*ports, last) if switches else ()


def _state(hop: tuple[int, int, int], now_ps: int) -> PortQueue:
    time_ns, queue_cells, sent_units = hop
    now_ns = now_ps // PS_PER_NS
    # Cells are rounded up.
    waiting_bytes = max(0, queue_cells - 1) * _QUEUE.unit_bytes
    return PortQueue((now_ns - (now_ns - time_ns) % _TIME_NS) * PS_PER_NS, waiting_bytes, sent_units * _SENT.unit_bytes)


def _in_order(before: PortQueue, after: PortQueue) -> tuple[PortQueue, PortQueue]:
    """Return two states with the bytes sent between them, though the field may have wrapped."""
    sent_bytes = (after.sent_bytes - before.sent_bytes) % (_SENT_UNITS * _SENT.unit_bytes)
    return before, replace(after, sent_bytes=before.sent_bytes + sent_bytes)

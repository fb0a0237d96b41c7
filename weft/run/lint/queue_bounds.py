"""How far a queue grows before something other than a mark slows its senders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.clocks.switch_memory import set_aside_bytes
from weft.switch.daemon.config import PfcConfig, PortConfig, SwitchConfig


@dataclass(frozen=True)
class QueueBound:
    """How far a queue grows, what happens then, whether that is a loss, and the keys by which it changes.

    The bound is the most favourable one for marks: all other ports send into the queue alike, and nothing else is in
    the switch.
    """

    most_bytes: int
    event: str
    keys: str
    loses: bool = False


def shared_bytes(config: SwitchConfig) -> int:
    """Return what of a switch's shared memory is set aside for nothing; 0 if its ports share none."""
    if config.buffer is None:
        return 0
    return max(0, config.buffer.capacity_bytes - sum(set_aside_bytes(config)))


def queue_bounds(config: SwitchConfig, port: PortConfig, data_classes: Iterable[int]) -> Iterator[QueueBound]:
    """Yield the bounds of a port's queues of data."""
    if config.buffer is None:
        yield QueueBound(port.queue_capacity_bytes, "their queues are full", "fabric.queue_capacity", loses=True)
        return
    senders, free_bytes = len(config.ports) - 1, shared_bytes(config)
    for number in data_classes:
        if port.credits is not None and number in port.credits.classes:
            most_bytes = senders * port.credits.buffer_bytes
            yield QueueBound(most_bytes, "all that send to them are out of credits", "credits.buffer")
        elif port.pfc is not None and number in port.pfc.classes:
            key = "pfc.xoff" if port.pfc.xoff_bytes else "buffer.capacity or pfc.alpha"
            most_bytes = _paused_bytes(port.pfc, senders, free_bytes)
            yield QueueBound(most_bytes, "PFC has paused all that send to them", key)
        else:
            alpha = config.buffer.alpha[number]
            most_bytes = config.buffer.reserved_bytes[number] + int(free_bytes * alpha / (1 + alpha))
            yield QueueBound(most_bytes, "their queues are full", "buffer.capacity or buffer.alpha", loses=True)


def excess_bytes(config: SwitchConfig, pfc: PfcConfig) -> int:
    """Return what came in by a port that must leave until its far end may go on, at most.

    That is what came after the pause, and the hysteresis; and, of a share of the free memory, what the port alone was
    allowed to hold and is not when all others hold as much.
    """
    excess = pfc.headroom_bytes + pfc.hysteresis_bytes
    if pfc.xoff_bytes:
        return excess
    ports = max(1, len(config.ports) - 1)
    alone, together = (pfc.alpha / (1 + count * pfc.alpha) for count in (1, ports))
    return excess + int(shared_bytes(config) * (alone - together))


def _paused_bytes(pfc: PfcConfig, senders: int, free_bytes: int) -> int:
    """Return what a queue holds when PFC has paused all ports that feed it, all alike."""
    if pfc.xoff_bytes:
        return senders * pfc.xoff_bytes
    # Each holds alpha times what all of them leave free.
    together = senders * pfc.alpha
    return int(free_bytes * together / (1 + together))

"""Checks that ECN can mark: a queue must not fill, nor PFC pause its senders, below the thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.clocks.switch_memory import set_aside_bytes
from weft.controller.features.ecn import marks_from_bytes
from weft.quantities.readable import format_rate
from weft.scenario import FabricOptions
from weft.switch.daemon.config import PfcConfig, PortConfig, SwitchConfig
from weft.traffic.extensions import congestion_needs


@dataclass(frozen=True)
class _Bound:
    """How far a queue grows before something other than a mark slows its senders, and by which keys that changes."""

    most_bytes: int
    event: str
    keys: str


def marking_warnings(configs: Sequence[SwitchConfig], options: FabricOptions, frame_bytes: int) -> list[str]:
    """Return a sentence for each rate of ports that drop or pause before they mark; [] where nobody waits for marks.

    Somebody does if the scenario sets thresholds, or if a congestion control needs marks; credits without thresholds
    are left alone, because their queues stay short by design. The bound of a queue is the most favourable one for
    marks: all other ports send into it alike, and nothing else is in the switch.

    Args:
        configs: of all switches.
        options: as given.
        frame_bytes: of the largest frame. A mark goes by the depth without it, or by the depth that it met.
    """
    is_set = options.ecn.kmin is not None
    if not is_set and not any(congestion_needs(each).marks for each in options.transport.congestion_controls):
        return []
    found: dict[tuple[int, str], str] = {}
    for config in configs:
        shared_bytes = _shared_bytes(config)
        for port in config.ports:
            if port.rate_bps == 0 or (port.credits is not None and not is_set):
                continue
            kmin_bytes = marks_from_bytes(options.ecn.kmin, port.rate_bps)
            for bound in _bounds(config, port, shared_bytes, options.scheduling.data_classes):
                key = port.rate_bps, bound.event
                if kmin_bytes + frame_bytes > bound.most_bytes and key not in found:
                    found[key] = _sentence(f"{config.name}:{port.port}", port, kmin_bytes, bound, is_set)
    return list(found.values())


def _sentence(where: str, port: PortConfig, kmin_bytes: int, bound: _Bound, is_set: bool) -> str:
    kmin = "ecn.kmin" if is_set else "ecn.kmin's default for that rate"
    return (
        f"ECN does not mark at ports of {format_rate(port.rate_bps)}, such as {where}, before {bound.event}, at "
        f"{bound.most_bytes} B: marks begin above {kmin_bytes} B, {kmin} (raise {bound.keys}, or lower ecn.kmin)"
    )


def _bounds(config: SwitchConfig, port: PortConfig, shared_bytes: int, data_classes: Iterable[int]) -> Iterator[_Bound]:
    """Yield the bounds of a port's queues of data."""
    if config.buffer is None:
        yield _Bound(port.queue_capacity_bytes, "their queues are full", "fabric.queue_capacity")
        return
    senders = len(config.ports) - 1
    for number in data_classes:
        if port.credits is not None and number in port.credits.classes:
            most_bytes = senders * port.credits.buffer_bytes
            yield _Bound(most_bytes, "all that send to them are out of credits", "credits.buffer")
        elif port.pfc is not None and number in port.pfc.classes:
            key = "pfc.xoff" if port.pfc.xoff_bytes else "buffer.capacity or pfc.alpha"
            most_bytes = _paused_bytes(port.pfc, senders, shared_bytes)
            yield _Bound(most_bytes, "PFC has paused all that send to them", key)
        else:
            alpha = config.buffer.alpha[number]
            most_bytes = config.buffer.reserved_bytes[number] + int(shared_bytes * alpha / (1 + alpha))
            yield _Bound(most_bytes, "their queues are full", "buffer.capacity or buffer.alpha")


def _shared_bytes(config: SwitchConfig) -> int:
    """Return what of a switch's shared memory is set aside for nothing; 0 if its ports share none."""
    if config.buffer is None:
        return 0
    return max(0, config.buffer.capacity_bytes - sum(set_aside_bytes(config)))


def _paused_bytes(pfc: PfcConfig, senders: int, shared_bytes: int) -> int:
    """Return what a queue holds when PFC has paused all ports that feed it, all alike."""
    if pfc.xoff_bytes:
        return senders * pfc.xoff_bytes
    # Each holds alpha times what all of them leave free.
    together = senders * pfc.alpha
    return int(shared_bytes * together / (1 + together))

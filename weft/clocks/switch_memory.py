"""From a scenario's sections on memory and flow control to the configuration of switches and hosts."""

from __future__ import annotations

from weft.controller.features.virtual_lanes import class_of_dscp, lane_classes
from weft.controller.routing import ROUTING_KINDS
from weft.engine import CREDIT_BLOCK_BYTES, pfc_headroom_bytes
from weft.quantities.traffic_classes import CLASSES
from weft.scenario import FabricOptions, KeyProblem, PfcWatchdogSection
from weft.scenario.tenant_shares import shares_of
from weft.switch.daemon.config import (
    BufferConfig,
    CreditsConfig,
    PfcConfig,
    PfcWatchdogConfig,
    SwitchConfig,
    TrimmingConfig,
)
from weft.topologies import Endpoint, FabricSpec, PortSpec, SwitchSpec, longest_path
from weft.traffic.transport_settings import CreditSettings


def buffer_config(switch: SwitchSpec, options: FabricOptions) -> BufferConfig | None:
    """Return the memory that a switch's ports share; None where each has its own."""
    buffer = options.buffer
    is_divided = options.pfc.classes or options.credits.classes or shares_of(options.tenants)
    if buffer.capacity is None and not is_divided:
        return None
    own = sum(port.link.memory_to_share_bytes for port in switch.ports)
    return BufferConfig(
        capacity_bytes=own if buffer.capacity is None else buffer.capacity,
        reserved_bytes=tuple(buffer.reserved_by_class),
        alpha=tuple(buffer.alpha_by_class),
    )


def trimming_config(port: PortSpec, options: FabricOptions) -> TrimmingConfig | None:
    """Return how a port trims, None where it drops."""
    trimming = options.trimming
    if not trimming.classes:
        return None
    return TrimmingConfig(
        classes=tuple(sorted(set(trimming.classes))),
        size_bytes=trimming.size,
        dscp=trimming.last_hop_dscp if port.peer_is_host else trimming.dscp,
        queue=trimming.queue,
        trimmable_dscps=tuple(sorted(set(trimming.trimmable_dscps))),
        reserved_bytes=trimming.reserved,
    )


def pfc_config(port: PortSpec, switch: SwitchSpec, options: FabricOptions, frame_bytes: int) -> PfcConfig | None:
    """Return a port's priority flow control, None where there is none."""
    pfc = options.pfc
    if not pfc.classes:
        return None
    headroom = pfc.headroom
    if headroom is None:
        headroom = pfc_headroom_bytes(
            rate_bps=port.link.rate_bps,
            delay_ps=port.link.delay_ps,
            frame_bytes=frame_bytes,
            # What has come, and is not yet in the queue that it will fill.
            response_ps=options.switching.latency,
        )
    return PfcConfig(
        classes=tuple(sorted(set(pfc.classes))),
        source_mac=switch.mac,
        xoff_bytes=pfc.xoff or 0,
        alpha=pfc.pause_alpha,
        hysteresis_bytes=2 * frame_bytes if pfc.hysteresis is None else pfc.hysteresis,
        headroom_bytes=headroom,
        pause_quanta=pfc.pause_quanta,
        watchdog=_watchdog_config(pfc.watchdog),
    )


def _watchdog_config(watchdog: PfcWatchdogSection | None) -> PfcWatchdogConfig | None:
    if watchdog is None:
        return None
    return PfcWatchdogConfig(
        detection_ps=watchdog.detection_time, restoration_ps=watchdog.restoration_time, action=watchdog.action
    )


def credits_config(switch: SwitchSpec, options: FabricOptions, frame_bytes: int) -> CreditsConfig:
    """Return the credits of a port with credit flow control. Raises KeyProblem if they are too few for a frame."""
    _require_credits_for_a_frame(options, frame_bytes)
    return CreditsConfig(
        classes=tuple(sorted(set(options.credits.classes))),
        source_mac=switch.mac,
        buffer_bytes=options.credits.buffer,
        largest_frame_bytes=frame_bytes,
    )


def _require_credits_for_a_frame(options: FabricOptions, frame_bytes: int) -> None:
    buffer_bytes = options.credits.buffer
    if buffer_bytes < -(-frame_bytes // CREDIT_BLOCK_BYTES) * CREDIT_BLOCK_BYTES:
        raise KeyProblem(
            "credits.buffer",
            f"{buffer_bytes} B hold no frame of {frame_bytes} B in blocks of {CREDIT_BLOCK_BYTES} B, "
            "so none would ever be sent",
        )


def set_aside_bytes(config: SwitchConfig) -> tuple[int, int, int]:
    """Return what of a switch's memory is reserved for queues, for what comes after a pause, and for credits."""
    reserved = len(config.ports) * sum(config.buffer.reserved_bytes) if config.buffer else 0
    headroom = sum(port.pfc.headroom_bytes * len(port.pfc.classes) for port in config.ports if port.pfc)
    credit = sum(port.credits.buffer_bytes * len(port.credits.classes) for port in config.ports if port.credits)
    return reserved, headroom, credit


def require_shared_memory(config: SwitchConfig, frame_bytes: int) -> None:
    """Check that a switch's buffer holds a frame, and more than is set aside. Raises KeyProblem."""
    buffer = config.buffer
    if buffer is None:
        return
    if buffer.capacity_bytes < frame_bytes:
        raise KeyProblem("buffer.capacity", f"{buffer.capacity_bytes} B hold no frame, which may have {frame_bytes} B")
    reserved, headroom, credit = set_aside_bytes(config)
    if reserved + headroom + credit >= buffer.capacity_bytes:
        raise KeyProblem(
            "buffer",
            f"{buffer.capacity_bytes} B of {config.name} leave nothing to share: its {len(config.ports)} "
            f"ports reserve {reserved} B and need {headroom} B of headroom for PFC and {credit} B for credits",
        )


def classes_of_dscps(fabric: FabricSpec, options: FabricOptions) -> list[dict[int, int]]:
    """Return the classes of frames on interfaces by their DSCP, for each plane; nothing where no port has to know."""
    if options.clock == "virtual" or not (options.pfc.classes or options.credits.classes):
        return [{}] * fabric.planes
    kind = ROUTING_KINDS.named(options.routing.kind)
    classes, of_transport = options.scheduling.data_classes, dict(options.transport.kind.code_points)
    return [class_of_dscp(lanes, classes) | of_transport for lanes in kind.lanes_of_planes(fabric)]


def host_credits(options: FabricOptions, frame_bytes: int, nic: Endpoint, port: Endpoint) -> CreditSettings | None:
    """Return the credits of a NIC at a switch's port, None where its link has none."""
    if not options.credits.on(nic, port):
        return None
    _require_credits_for_a_frame(options, frame_bytes)
    return CreditSettings(
        classes=tuple(sorted(set(options.credits.classes))),
        buffer_bytes=options.credits.buffer,
        largest_frame_bytes=frame_bytes,
    )


def lossless_memory_bytes(fabric: FabricSpec, options: FabricOptions, frame_bytes: int) -> int:
    """Return the memory of the switches on the longest path, which may be full before a packet of data.

    0 where no class of data is lossless: a packet that is late was dropped there.
    Routes by intermediates may pass twice as many switches.
    """
    lossless = {*options.pfc.classes, *options.credits.classes}
    if lossless.isdisjoint(options.scheduling.data_classes) or len(fabric.hosts) < 2:
        return 0
    capacities_bytes = [
        each.capacity_bytes for switch in fabric.switches if (each := buffer_config(switch, options)) is not None
    ]
    switches = max(len(longest_path(network, frame_bytes).nodes) - 2 for network in fabric.networks)
    return max(capacities_bytes) * switches * (2 if options.routing.has_intermediates else 1)


def quantum_by_class(fabric: FabricSpec, options: FabricOptions, frame_bytes: int) -> tuple[int, ...]:
    """Return the quantum of each class at the switches' ports, 0 for strict ones.

    Routes divide the class of data into lanes, each a class. None is more urgent than another, so by default they take
    turns by a frame. With further classes of data they cannot, because a class without a quantum goes before those with
    one.
    """
    given, data_classes = options.scheduling.quantum_by_class, options.scheduling.data_classes
    if any(given) or len(data_classes) > 1:
        return tuple(given)
    kind = ROUTING_KINDS.named(options.routing.kind)
    lanes = max(kind.lanes_of_planes(fabric), key=lambda each: each.count)
    if lanes.count == 1:
        return tuple(given)
    taking_turns = {each for sent_in in data_classes for each in lane_classes(sent_in, lanes)}
    return tuple(frame_bytes if number in taking_turns else 0 for number in range(CLASSES))


def host_pfc_quanta(options: FabricOptions) -> int:
    """Return the quanta of a host's pauses (`weft.traffic.host_config.NicConfig.pfc_quanta`), 0 without PFC."""
    return options.pfc.pause_quanta if options.pfc.classes else 0

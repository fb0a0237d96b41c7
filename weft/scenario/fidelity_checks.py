"""Refuses scenarios in which segments in place of packets would mislead."""

from __future__ import annotations

from collections.abc import Callable

from weft.controller.features.ecn import EcnSettings
from weft.scenario.fast_forward_checks import check_capture_of_repeated
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.scenario.sections import LEAST_SEGMENT_PACKETS, MAX_SEGMENT_PACKETS
from weft.topologies import FabricSpec
from weft.traffic.extensions import congestion_needs

_SEGMENTS_IN_A_QUEUE = 8
"""A queue without room for so many would lose segments where packets still fit."""
_WITHOUT = "(valid: leave fidelity.segment out)"


def check_fidelity(options: FabricOptions) -> None:
    """Check that segments go with the other options. Raises KeyProblem."""
    if not options.fidelity.has_segments:
        return
    packets = options.fidelity.segment_packets(options.mtu_bytes)
    if not LEAST_SEGMENT_PACKETS <= packets <= MAX_SEGMENT_PACKETS:
        least, most = (n * options.mtu_bytes for n in (LEAST_SEGMENT_PACKETS, MAX_SEGMENT_PACKETS))
        raise KeyProblem(
            "fidelity.segment",
            f"{options.fidelity.segment} B are {packets} packets with an mtu of {options.mtu_bytes}",
            valid=f"{least} to {most} B",
        )
    for key, why in _reasons(options):
        raise KeyProblem("fidelity.segment", f"segments do not go with {key}: {why} {_WITHOUT}")


def check_capture(options: FabricOptions) -> None:
    """Check that frames may be captured. Raises KeyProblem."""
    if options.fidelity.has_segments:
        raise KeyProblem(
            "fidelity.segment",
            f"segments are not captured: each has the bytes of its first packet {_WITHOUT}",
        )
    check_capture_of_repeated(options)


def _reasons(options: FabricOptions) -> list[tuple[str, str]]:
    """Return keys that do not go with segments, and why."""
    transport, observe = options.transport, options.observe
    by_telemetry = [name for name in transport.congestion_controls if congestion_needs(name).telemetry]
    found = [
        (options.clock == "real", "clock: real", "real links carry packets"),
        (bool(options.pfc.classes), "pfc", "pauses strike between packets, and headroom is made for them"),
        (bool(options.credits.classes), "credits", "they count packets"),
        (any(each.any for each in options.faults.variants), "faults", "they strike packets one by one"),
        (bool(options.link_retry.links), "link_retry", "it numbers and sends again packets one by one"),
        (options.switching.cut_through, "switching.mode: cut-through", "a segment has one header"),
        (
            options.switching.depth_unit == "packets",
            "switching.depth_unit: packets",
            "a segment would count as one packet",
        ),
        (options.nic.takes_time, "nic", "it has costs for each packet"),
        (options.host is not None, "host", "packets of all ranks take turns on its links"),
        (transport.sprays, f"transport.path: {transport.path}", "it sends each packet another way"),
        (options.reorders, "routing", "switches send each packet another way"),
        (
            bool(by_telemetry),
            f"transport.congestion_control: {' '.join(by_telemetry[:1])}",
            "it paces by INT of each packet",
        ),
        (
            options.ecn.at == "enqueue",
            "ecn.at: enqueue",
            "they are marked one by one as they leave a queue, where it is long then",
        ),
        (bool(observe.captures), "observe.captures", "a segment has the bytes of its first packet"),
        (bool(observe.int_flows), "observe.int_flows", "a segment is stamped once"),
        (options.telemetry.is_on, "telemetry", "switches add to each packet"),
    ]
    return [(key, why) for applies, key, why in found if applies]


def check_reduction(options: FabricOptions, key: str) -> None:
    """Check that switches may reduce for what is run. Raises KeyProblem for `key`."""
    if options.fidelity.has_segments:
        raise KeyProblem(
            key,
            "fidelity.segment does not go with a reduction in the network, which adds packets up",
            valid="other algorithms",
        )


def check_fidelity_of_fabric(fabric: FabricSpec, options: FabricOptions, marking: Callable[[], EcnSettings]) -> None:
    """Check that queues hold segments enough, and that ECN begins beyond one. Raises KeyProblem."""
    if not options.fidelity.has_segments:
        return
    segment_bytes = options.fidelity.segment or 0
    ports = [port for switch in fabric.switches for port in switch.ports]
    smallest = options.buffer.capacity or min(port.link.queue_capacity_bytes for port in ports)
    if smallest < _SEGMENTS_IN_A_QUEUE * segment_bytes:
        raise KeyProblem(
            "fidelity.segment",
            f"{segment_bytes} B is too large for queues of {smallest} B, which should hold {_SEGMENTS_IN_A_QUEUE} "
            "segments",
            valid=f"up to {smallest // _SEGMENTS_IN_A_QUEUE} B",
        )
    kmin_bytes = min(
        marking().marks_from_bytes(rate_bps, options.scheduling.data_classes)
        for rate_bps in {port.link.rate_bps for port in ports}
    )
    if kmin_bytes < segment_bytes:
        raise KeyProblem(
            "fidelity.segment",
            f"{segment_bytes} B is more than the {kmin_bytes} B of a queue from which ECN marks, so that a single "
            "segment would be marked",
            valid=f"up to {kmin_bytes} B",
        )

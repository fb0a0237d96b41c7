"""From a fabric's description and options to the configuration of its embedded switches; depths that they can say."""

from __future__ import annotations

from functools import lru_cache

from weft.clocks.marking import ecn_settings
from weft.clocks.switch_memory import (
    buffer_config,
    classes_of_dscps,
    credits_config,
    pfc_config,
    quantum_by_class,
    require_shared_memory,
    trimming_config,
)
from weft.controller.features.ecn import EcnSettings
from weft.controller.target import MOST_DEPTH_UNITS, TargetFacts, cell_bytes_for
from weft.quantities.readable import format_rate, format_time
from weft.quantities.units import PS_PER_S
from weft.scenario import FabricOptions, KeyProblem, LinkFaults
from weft.scenario.sections import FaultsSection
from weft.switch.daemon.config import (
    UNSPLIT_BYTES,
    FaultsConfig,
    LinkRetryConfig,
    PortConfig,
    SwitchConfig,
    SwitchingConfig,
)
from weft.topologies import Endpoint, FabricSpec, PortSpec, SwitchSpec, serialisation_ps
from weft.topologies.addressing import CPU_PORT


def _largest_threshold_bytes(fabric: FabricSpec, options: FabricOptions) -> int:
    fastest = max((port.link.rate_bps for switch in fabric.switches for port in switch.ports), default=0)
    profiles = ecn_settings(fabric, options).profiles_at(fastest, options.scheduling.data_classes)
    return max(profile.kmax_bytes for profile in profiles.values())


def depth_cell_bytes(fabric: FabricSpec, options: FabricOptions) -> int:
    """Return the size of a cell, the same in all switches: 80 B, unless a threshold is deeper than 19 bits of these."""
    return cell_bytes_for(_largest_threshold_bytes(fabric, options))


def require_depths(fabric: FabricSpec, options: FabricOptions, target: TargetFacts) -> None:
    """Check that the depth of a queue can say ECN's thresholds. Raises KeyProblem.

    Cells grow with them; packets, in which BMv2 counts, stay what they are.
    """
    most_bytes = MOST_DEPTH_UNITS * target.depth_unit_bytes
    kmax_bytes = _largest_threshold_bytes(fabric, options)
    if kmax_bytes <= most_bytes:
        return
    given = options.ecn.kmax is not None
    whose = "" if given else ", kmax's default at the fastest ports,"
    raise KeyProblem(
        "ecn.kmax" if given else "ecn",
        f"{kmax_bytes} B{whose} are more than the depth of a queue can say in packets of {target.depth_unit_bytes} B",
        valid=f"kmax up to {most_bytes} B; or depths in cells, which grow with it: target: embedded with "
        "switching.depth_unit: cells",
    )


def switch_configs(fabric: FabricSpec, options: FabricOptions, frame_bytes: int) -> list[SwitchConfig]:
    """Return every switch's configuration. Under the real clock ports have interfaces, but for internal links.

    Raises:
        KeyProblem: a switch's buffer does not hold what is reserved in it.
    """
    classes = classes_of_dscps(fabric, options)
    quantum_bytes = quantum_by_class(fabric, options, frame_bytes)
    cell_bytes = depth_cell_bytes(fabric, options)
    marking = ecn_settings(fabric, options)
    return [
        _switch_config(switch, options, frame_bytes, classes[switch.plane], quantum_bytes, cell_bytes, marking)
        for switch in fabric.switches
    ]


def _switch_config(
    switch: SwitchSpec,
    options: FabricOptions,
    frame_bytes: int,
    class_of_dscp: dict[int, int],
    quantum_bytes: tuple[int, ...],
    cell_bytes: int,
    marking: EcnSettings,
) -> SwitchConfig:
    switching = options.switching
    faults = options.faults if options.faults.any else None
    config = SwitchConfig(
        device_id=switch.device_id,
        name=switch.name,
        cpu_port=_cpu_port(switch, options),
        ports=tuple(
            _port_config(port, switch, options, frame_bytes, quantum_bytes, faults, marking)
            for port in switch.ports
            # Under the real clock a dark port has neither an interface nor a link, and never will.
            if (port.is_cabled if options.clock == "real" else not port.leads_to_controller)
        ),
        buffer=buffer_config(switch, options),
        class_of_dscp=class_of_dscp,
        depth_unit=switching.depth_unit,
        cell_bytes=cell_bytes,
        time_unit=switching.time_unit,
        switching=SwitchingConfig(latency_ps=switching.latency, cut_through=switching.cut_through)
        if switching.takes_part
        else None,
    )
    require_shared_memory(config, frame_bytes)
    return config


def _cpu_port(switch: SwitchSpec, options: FabricOptions) -> int:
    """Return the port for P4Runtime's packet-ins and packet-outs.

    In virtual time no program sniffs at an interface, so this port exists only where a controller does.
    """
    if options.clock == "real":
        return CPU_PORT
    return next((port.number for port in switch.ports if port.leads_to_controller), CPU_PORT)


def _port_config(
    port: PortSpec,
    switch: SwitchSpec,
    options: FabricOptions,
    frame_bytes: int,
    quantum_bytes: tuple[int, ...],
    faults: FaultsSection | None,
    marking: EcnSettings,
) -> PortConfig:
    here, peer = Endpoint(switch.name, port.number), port.peer
    credits = options.credits
    has_interface = options.clock == "real" and (
        port.peer_is_host or port.leads_to_controller or options.links == "veth"
    )
    return _shared_port_config(
        port=port.number,
        interface=port.interface if has_interface else None,
        rate_bps=port.link.rate_bps,
        delay_ps=port.link.delay_ps,
        queue_capacity_bytes=port.link.queue_capacity_bytes,
        host_uplink=port.peer_is_host,
        faults=_NO_FAULTS if faults is None else faults_config(faults.on(here, peer)),
        uplink_faults=_NO_FAULTS if faults is None or not port.peer_is_host else faults_config(faults.on(peer, here)),
        quantum_bytes=quantum_bytes,
        split_depth_bytes=marking.marks_from_bytes(port.link.rate_bps, options.scheduling.data_classes)
        if options.fidelity.has_segments
        else UNSPLIT_BYTES,
        trimming=trimming_config(port, options),
        pfc=pfc_config(port, switch, options, frame_bytes),
        credits=credits_config(switch, options, frame_bytes) if credits.on(here, peer) else None,
        retry=retry_config(port, options, frame_bytes) if options.link_retry.on(here, peer) else None,
    )


RETRY_MESSAGE_BYTES = 8
"""An ACK or NACK of link-level retry (kMessageBytes in engine/links/link_retry.hpp)."""


def retry_config(port: PortSpec, options: FabricOptions, frame_bytes: int) -> LinkRetryConfig:
    """Return the retry of a port's link. Raises KeyProblem for a buffer below a frame, a timeout below an answer."""
    retry, link = options.link_retry, port.link
    if not link.rate_bps:
        raise KeyProblem("link_retry.links", "a link without a rate sends again in no time", valid="links with a rate")
    frame_ps = serialisation_ps(frame_bytes, link.rate_bps)
    answer_ps = 2 * link.delay_ps + retry.response + serialisation_ps(RETRY_MESSAGE_BYTES, link.rate_bps)
    buffer_bytes = retry.buffer or answer_ps * link.rate_bps // (8 * PS_PER_S) + 3 * frame_bytes
    if buffer_bytes < frame_bytes:
        raise KeyProblem(
            "link_retry.buffer", f"{buffer_bytes} B hold no frame of {frame_bytes} B", valid=f"{frame_bytes} B or more"
        )
    timeout_ps = retry.timeout or 2 * answer_ps + 4 * frame_ps
    if timeout_ps <= answer_ps:
        raise KeyProblem(
            "link_retry.timeout",
            f"{format_time(timeout_ps)} are no longer than an answer takes on a link of {format_rate(link.rate_bps)} "
            f"and {format_time(link.delay_ps)}",
            valid=f"more than {format_time(answer_ps)}",
        )
    return LinkRetryConfig(
        buffer_bytes=buffer_bytes,
        timeout_ps=timeout_ps,
        attempts=retry.attempts,
        response_ps=retry.response,
        largest_frame_bytes=frame_bytes,
    )


# Ports with the same number and the same link are alike, and a fabric has tens of thousands of them.
_shared_port_config = lru_cache(maxsize=1 << 12)(PortConfig)
_NO_FAULTS = FaultsConfig()


def faults_config(faults: LinkFaults) -> FaultsConfig:
    """Return a scenario's faults of a link in the switches' terms."""
    return FaultsConfig(
        loss=faults.loss,
        duplicate=faults.duplicate,
        delay_probability=faults.delay_probability,
        extra_delay_ps=faults.extra_delay,
        bit_error_rate=faults.bit_error_rate,
    )


def links_between_switches(fabric: FabricSpec) -> list[tuple[int, int, int, int]]:
    """Return the links between switches as (device, port, device, port)."""
    devices = {switch.name: switch.device_id for switch in fabric.switches}
    return [
        (devices[link.a.node], link.a.port, devices[link.b.node], link.b.port) for link in fabric.links_between_switches
    ]

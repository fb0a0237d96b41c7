"""The figures of a run that are known before it: configurations of switches, round trips, congestion controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weft.clocks.endpoint_settings import patient_timeout_ps
from weft.clocks.frame_sizes import any_frame_bytes, int_md_bytes, write_frame_bytes
from weft.clocks.marking import ecn_settings
from weft.clocks.switch_memory import lossless_memory_bytes
from weft.controller.features.ecn import EcnSettings
from weft.engine import CongestionNeeds, congestion_parameters_in_force, rc_defaults
from weft.quantities.definitions import without_unit
from weft.run.lint.queue_bounds import excess_bytes
from weft.run.spec import RunSpec
from weft.run.traffic_kinds.base import TrafficItem
from weft.scenario import FabricOptions
from weft.scenario.transport import CongestionSection
from weft.switch.daemon.config import PortConfig, SwitchConfig
from weft.topologies import FabricSpec, base_rtt_ps, nearest_path, serialisation_ps
from weft.topologies.round_trips import (
    loaded_round_trip_ps,
    loaded_round_trips,
    path_round_trip_ps,
    slowest_configuration,
)
from weft.traffic.extensions import congestion_needs, engine_name
from weft.traffic.transport_settings import CongestionSettings

_OF_IP = ("ping", "script", "tcp", "traceroute", "udp")
"""Kinds of traffic over IP stacks."""


@dataclass(frozen=True)
class PlannedPort:
    """A port of a switch, and the switch's configuration."""

    switch: SwitchConfig
    port: PortConfig

    @property
    def name(self) -> str:
        """SWITCH:PORT."""
        return f"{self.switch.name}:{self.port.port}"


@dataclass(frozen=True)
class Control:
    """A congestion control of some classes of data.

    Attributes:
        key: its section: `transport`, or `transport.classes.CLASS`.
        section: as the scenario has it.
        needs: of the fabric.
        rate_bps: of the hosts' ports.
        in_force: all parameters by the engine's names and in its units, None for a class in Python.
    """

    key: str
    section: CongestionSection
    needs: CongestionNeeds
    rate_bps: int
    in_force: Mapping[str, float] | None

    @property
    def follows_anything(self) -> bool:
        """Whether something besides losses slows its senders."""
        return self.needs.marks or self.needs.telemetry or self.needs.every_acknowledgement

    def is_given(self, parameter: str) -> bool:
        """Return whether the scenario sets a parameter, by the engine's name."""
        return without_unit(parameter) in self.section.parameters

    def given(self, parameter: str) -> float | None:
        """Return a parameter that the scenario sets; None if it does not, or there is none of that name."""
        if self.in_force is None or not self.is_given(parameter):
            return None
        return self.in_force.get(parameter)

    def parameter_key(self, parameter: str) -> str:
        """Return the key of a parameter in the scenario."""
        return f"{self.key}.parameters.{without_unit(parameter)}"


@dataclass(frozen=True)
class Plan:
    """A run's description with the figures that follow from it; `configs` are the configurations of all switches."""

    spec: RunSpec
    configs: Sequence[SwitchConfig]

    @property
    def options(self) -> FabricOptions:
        """Options of the fabric."""
        return self.spec.options

    @property
    def fabric(self) -> FabricSpec:
        """The fabric."""
        return self.spec.fabric

    @cached_property
    def items(self) -> list[tuple[str, TrafficItem]]:
        """All items of the traffic that run by themselves or with others, with their keys."""
        return [
            part
            for number, item in enumerate(self.spec.traffic)
            for part in item.with_parts(f"traffic[{number}]")
            if len(list(part[1].with_parts(""))) == 1
        ]

    @property
    def has_ip_traffic(self) -> bool:
        """Whether hosts have an IP stack, or programs of yours, which may follow marks and answer what is trimmed."""
        return any(item.kind in _OF_IP for _, item in self.items)

    @property
    def frame_bytes(self) -> int:
        """Largest frame of a WRITE."""
        return write_frame_bytes(self.options, self._int_md_bytes)

    @property
    def any_frame_bytes(self) -> int:
        """Largest frame on any link."""
        return any_frame_bytes(self.options, self._int_md_bytes)

    @cached_property
    def _int_md_bytes(self) -> int:
        return int_md_bytes(self.fabric, self.options)

    @cached_property
    def ports(self) -> list[PlannedPort]:
        """A port of each distinct configuration, in order; without those that have no rate."""
        found: dict[tuple[object, ...], PlannedPort] = {}
        for config in self.configs:
            for port in config.ports:
                if port.rate_bps:
                    flow_control = port.pfc and port.pfc.headroom_bytes, port.credits is not None
                    memory = port.queue_capacity_bytes, config.buffer, len(config.ports)
                    key = port.rate_bps, port.delay_ps, flow_control, memory
                    found.setdefault(key, PlannedPort(config, port))
        return list(found.values())

    @cached_property
    def marking(self) -> EcnSettings:
        """Where switches mark packets."""
        return ecn_settings(self.fabric, self.options)

    @cached_property
    def _slowest(self) -> FabricSpec:
        return slowest_configuration(self.fabric, self.frame_bytes, self.options.switching.latency)

    @cached_property
    def idle_round_trip_ps(self) -> int:
        """Round trip of the farthest pair of hosts, in the idle fabric and with what their adapters add."""
        idle_ps = path_round_trip_ps(self._slowest, self.frame_bytes, self.options.switching.latency)
        return idle_ps + self.options.adapters_round_trip_ps(self.options.mtu_bytes)

    @cached_property
    def nearest_round_trip_ps(self) -> int:
        """Round trip of the nearest pair of hosts in the idle fabric, without their adapters; 0 for a single host."""
        if len(self.fabric.hosts) < 2:
            return 0
        return base_rtt_ps(nearest_path(self.fabric, self.frame_bytes), self.frame_bytes)

    @cached_property
    def nearest_switches(self) -> int:
        """Switches between the nearest pair of hosts; 0 for a single host."""
        return len(nearest_path(self.fabric, self.frame_bytes).nodes) - 2 if len(self.fabric.hosts) > 1 else 0

    @cached_property
    def drain_ps(self) -> int:
        """How long the longest queue takes to drain."""
        loaded_ps = loaded_round_trip_ps(self._slowest, self.frame_bytes, self.options.switching.latency)
        return self.patient_timeout_ps - 4 * loaded_ps

    @property
    def frame_ps(self) -> int:
        """How long the slowest port of a host sends a full frame."""
        return serialisation_ps(self.frame_bytes, self.host_rates_bps[0]) if self.host_rates_bps else 0

    @property
    def has_queue_capacity(self) -> bool:
        """Whether `fabric.queue_capacity` decides the ports' memory."""
        return "queue_capacity_bytes" in self.fabric.parameters

    @cached_property
    def patient_timeout_ps(self) -> int:
        """Default retransmission timeout, which outlasts every full queue."""
        return patient_timeout_ps(
            self._slowest,
            self.frame_bytes,
            self.options.switching.latency,
            lossless_memory_bytes(self._slowest, self.options, self.frame_bytes),
            self.options.buffer.capacity,
        )

    @property
    def timeout_ps(self) -> int:
        """Retransmission timeout of a queue pair's first retry."""
        return self.options.transport.retransmission_timeout or self.patient_timeout_ps

    @property
    def patience_ps(self) -> int:
        """How long a queue pair that hears nothing sends again until it fails, at least."""
        defaults = rc_defaults()
        most_doublings = defaults["timeout_backoff_limit"]
        return sum(self.timeout_ps << min(each, most_doublings) for each in range(defaults["retry_limit"] + 1))

    @cached_property
    def longest_pause_ps(self) -> int:
        """How long PFC pauses a port in healthy congestion: all other ports of the far end send to one alike.

        A pause ends when what is above the threshold has left by a share of that port: see `excess_bytes`.
        """
        pauses_ps = [
            serialisation_ps(excess_bytes(each.switch, pfc) * max(1, len(each.switch.ports) - 1), each.port.rate_bps)
            for each in self.ports
            if (pfc := each.port.pfc) is not None
        ]
        return max(pauses_ps, default=0)

    @cached_property
    def host_rates_bps(self) -> list[int]:
        """Distinct rates of the hosts' ports, the slowest first; those to a storage network are left out."""
        count = self.fabric.training_nics
        rates = (nic.link.rate_bps for host in self.fabric.hosts for nic in host.nics[:count])
        return sorted({rate_bps for rate_bps in rates if rate_bps})

    @cached_property
    def controls(self) -> list[Control]:
        """The congestion control of each class of data that has its own, for each rate of the hosts' ports."""
        transport = self.options.transport
        settings = transport.settings()
        sections: list[tuple[str, CongestionSection, CongestionSettings]] = [("transport", transport, settings)]
        sections += [
            (f"transport.classes.{number}", section, settings.classes[number])
            for number, section in transport.classes.items()
        ]
        return [
            Control(key, section, congestion_needs(own.congestion_control), rate_bps, self._in_force(own, rate_bps))
            for key, section, own in sections
            for rate_bps in self.host_rates_bps
        ]

    def _in_force(self, own: CongestionSettings, rate_bps: int) -> Mapping[str, float] | None:
        native = engine_name(own.congestion_control)
        if native is None:
            return None
        trips = loaded_round_trips(self._slowest, self.frame_bytes, self.options.switching.latency)
        trips = trips.longer_by(self.options.adapters_round_trip_ps(self.options.mtu_bytes))
        return congestion_parameters_in_force(
            native,
            parameters=own.parameters,
            preset=own.preset or "",
            ack_interval_packets=self.options.transport.settings().ack_interval_in_force,
            line_rate_bps=rate_bps,
            base_round_trip_ps=trips.farthest_ps,
            frame_bytes=self.frame_bytes,
            nearest_round_trip_ps=trips.nearest_ps,
            nearest_hops=trips.nearest_switches,
            hop_round_trip_ps=trips.switch_ps,
        )

    @property
    def is_followed_by_none(self) -> bool:
        """Whether every congestion control is one of Weft's that needs nothing: only losses slow its senders."""
        return all(each.in_force is not None and not each.follows_anything for each in self.controls)

    def needing_marks(self) -> Iterator[Control]:
        """Yield the congestion controls that follow ECN's marks."""
        return (each for each in self.controls if each.needs.marks)

    def is_given(self, key: str) -> bool:
        """Return whether the scenario sets `section.key`."""
        section: Any = self.options
        for name in key.split("."):
            if name not in section.model_fields_set:
                return False
            section = getattr(section, name)
        return True

"""Start an endpoint process in every host's namespace."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from weft.clocks.endpoint_settings import nic_settings, patient_timeout_ps, plane_addresses, recording_of
from weft.clocks.losses import losses_of
from weft.clocks.real.host_sockets import HostSockets, scale_up_config
from weft.clocks.real.switch_daemon import REALTIME_PRIORITY
from weft.clocks.real.verbs_devices import device_folder
from weft.clocks.switch_memory import (
    classes_of_dscps,
    host_credits,
    host_pfc_quanta,
    lossless_memory_bytes,
)
from weft.system.child_processes import JsonLinesChild, python_environment, python_module
from weft.topologies import HostSpec
from weft.topologies.round_trips import round_trips_of_planes
from weft.traffic.control import EndpointGroup
from weft.traffic.endpoint_lines import configured
from weft.traffic.host_config import HostConfig
from weft.traffic.transport_settings import PathTraits, TransportSettings

if TYPE_CHECKING:
    from weft.clocks.real.lab import MininetLab

# Least retransmission timeout in real time. BMv2 takes about a millisecond for an aggregation packet; a timeout
# below what a window of them takes would only add to its work.
_WALL_CLOCK_FLOOR_NS = {"embedded": 20_000_000, "bmv2": 200_000_000}


def metrics_socket(directory: Path, host: HostSpec) -> Path:
    """Return where a host's process says what it has counted, in the lab's directory."""
    return directory / f"host{host.index}.metrics"


def control_socket(directory: Path, host: HostSpec) -> Path:
    """Return where a host's process takes an operator's commands, in the lab's directory."""
    return directory / f"host{host.index}.control"


def counters_socket(directory: Path, host: HostSpec) -> Path:
    """Return where a host's process takes those who watch its RDMA device's counters, in the lab's directory."""
    return directory / f"host{host.index}.counters"


class Endpoints:
    """The endpoint processes of a lab and the group that drives them. Use as a context manager."""

    def __init__(self, lab: MininetLab) -> None:
        self.lab = lab
        self.children: list[JsonLinesChild] = []
        self.group: EndpointGroup
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Endpoints:
        with contextlib.ExitStack() as stack, HostSockets(self.lab.fabric) as sockets:
            for host in self.lab.fabric.hosts:
                child = self._start(host, sockets.of(host.index))
                stack.callback(child.close)
                sockets.passed_on(host.index)
                self.children.append(child)
            stack.callback(self._ask_to_end)
            self.lab.own(*(child.process.pid for child in self.children))
            transport, paths = self.lab.options.transport.settings(), self._path_traits()
            settings = [
                self._settings(host, transport, paths, sockets.of(host.index)) for host in self.lab.fabric.hosts
            ]
            endpoints = configured(self.children, settings)
            self.group = EndpointGroup(
                endpoints,
                settings,
                ip_version=self.lab.options.ip_version,
                ways=self.lab.fabric,
                losses=partial(losses_of, self.lab.fabric, self.lab.operations),
            )
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def _ask_to_end(self) -> None:
        """Let all end at the same time."""
        for child in self.children:
            child.ask_to_end()

    def start_alone(self, host: HostSpec, verbs_listener: int) -> JsonLinesChild:
        """Start one host's process, which lets RDMA programs in that come to a listening socket.

        Raises:
            ChildError: it does not start.
        """
        transport, paths = self.lab.options.transport.settings(), self._path_traits()
        child = self._start(host, {}, (verbs_listener,))
        try:
            settings = self._settings(host, transport, paths, {})
            configured([child], [replace(settings, scale_up=None, verbs_socket=None, verbs_listener=verbs_listener)])
        except BaseException:
            child.close()
            raise
        return child

    def _start(
        self, host: HostSpec, sockets: Mapping[int, int], more_descriptors: tuple[int, ...] = ()
    ) -> JsonLinesChild:
        log = self.lab.directory / f"{host.name}.log"
        # One thread per host: NumPy's pools would only cost memory.
        environment = python_environment() | {"OPENBLAS_NUM_THREADS": "1"}
        with log.open("w", encoding="utf-8") as errors:
            process = self.lab.network.popen(
                host.name,
                python_module("weft.traffic.endpoint"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                pass_fds=(*sockets.values(), *more_descriptors),
            )
        return JsonLinesChild(f"the endpoint of {host.name}", process, log, self.lab.switch_processes)

    def _path_traits(self) -> PathTraits:
        lab = self.lab
        floor_ps = int(_WALL_CLOCK_FLOOR_NS[lab.options.target] * 1000 / lab.options.dilation)
        timeout_ps = patient_timeout_ps(
            lab.fabric,
            lab.frame_bytes,
            lab.options.switching.latency,
            lossless_memory_bytes(lab.fabric, lab.options, lab.frame_bytes),
            lab.options.buffer.capacity,
        )
        return lab.options.path_traits(max(floor_ps, timeout_ps))

    def _settings(
        self, host: HostSpec, transport: TransportSettings, paths: PathTraits, sockets: Mapping[int, int]
    ) -> HostConfig:
        lab = self.lab
        return HostConfig(
            name=host.name,
            rank=host.index,
            epoch_ns=lab.epoch_ns,
            dilation=lab.options.dilation,
            seed=lab.options.seed,
            entropy_seed=lab.options.hash_seed_in_force,
            mtu_bytes=lab.options.mtu_bytes,
            realtime_priority=REALTIME_PRIORITY,
            wall_clock_floor_ns=_WALL_CLOCK_FLOOR_NS[lab.options.target],
            nics=nic_settings(
                host,
                round_trips_of_planes(
                    lab.fabric,
                    lab.frame_bytes,
                    lab.options.switching.latency,
                    lab.options.adapters_round_trip_ps(lab.options.mtu_bytes),
                ),
                host_pfc_quanta(lab.options),
                partial(host_credits, lab.options, lab.largest_frame_bytes),
                classes_of_dscps(lab.fabric, lab.options),
                tuple(lab.options.scheduling.quantum_by_class),
            ),
            transport=transport,
            paths=paths,
            nic_costs=lab.options.nic.costs(),
            protocols=lab.options.protocols.settings(),
            compute_scale=lab.options.faults.compute_scale(host.name),
            recording=recording_of(lab.options.observe, lab.fabric, host),
            int_rates_bps=lab.int_rates,
            scale_up=scale_up_config(lab.fabric, host.index, sockets),
            metrics_socket=str(metrics_socket(lab.directory, host)),
            control_socket=str(control_socket(lab.directory, host)),
            verbs_socket=lab.verbs.sockets.get(host.name),
            verbs_device=str(device_folder(lab.directory, host.name)) if lab.verbs.sockets else None,
            counters_socket=str(counters_socket(lab.directory, host)) if lab.verbs.sockets else None,
            plane_addresses=self._plane_addresses if lab.verbs.sockets and transport.kind.spans_planes else (),
        )

    @cached_property
    def _plane_addresses(self) -> tuple[tuple[str, ...], ...]:
        return plane_addresses(self.lab.fabric)

"""Start an endpoint process in every host's namespace."""

from __future__ import annotations

import contextlib
import subprocess

from topologies import (
    FabricSpec,
    HostSpec,
    bandwidth_delay_product_bytes,
    base_rtt_ps,
    longest_path,
)
from topologies.addressing import IpVersion
from traffic.aggregation_format import FRAME_BYTES
from traffic.control import EndpointGroup, HostSettings, NicSettings
from weft.child import JsonLinesChild, python_environment, python_module
from weft.daemon import REALTIME_PRIORITY
from weft.lab import Lab
from weft.scenario import MAX_SLOTS

# Least retransmission timeout in real time. BMv2 takes about a millisecond for an aggregation packet; a timeout
# below what a window of them takes would only add to its work.
_WALL_CLOCK_FLOOR_NS = {"embedded": 20_000_000, "bmv2": 200_000_000}


class Endpoints:
    """The endpoint processes of a lab and the group that drives them. Use as a context manager."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.children: list[JsonLinesChild] = []
        self.group: EndpointGroup
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Endpoints:
        with contextlib.ExitStack() as stack:
            for host in self.lab.fabric.hosts:
                child = self._start(host)
                stack.callback(child.close)
                self.children.append(child)
            self.lab.own(*(child.process.pid for child in self.children))
            settings = [self._settings(host) for host in self.lab.fabric.hosts]
            self.group = EndpointGroup(self.children, settings, ip_version=self.lab.options.ip_version)
            self.group.configure()
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def _start(self, host: HostSpec) -> JsonLinesChild:
        log = self.lab.directory / f"{host.name}.log"
        # One thread per host: NumPy's pools would only cost memory.
        environment = python_environment() | {"OPENBLAS_NUM_THREADS": "1"}
        with log.open("w", encoding="utf-8") as errors:
            process = self.lab.network.popen(
                host.name,
                python_module("traffic.endpoint"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
            )
        return JsonLinesChild(f"the endpoint of {host.name}", process, log, self.lab.switch_processes)

    def _settings(self, host: HostSpec) -> HostSettings:
        lab = self.lab
        round_trip_ps = loaded_round_trip_ps(lab.fabric, lab.frame_bytes)
        return HostSettings(
            name=host.name,
            rank=host.index,
            epoch_ns=lab.epoch_ns,
            dilation=lab.options.dilation,
            seed=lab.options.seed,
            mtu_bytes=lab.options.mtu_bytes,
            realtime_priority=REALTIME_PRIORITY,
            wall_clock_floor_ns=_WALL_CLOCK_FLOOR_NS[lab.options.target],
            nics=tuple(
                NicSettings(
                    interface=nic.interface,
                    mac=nic.mac,
                    ipv4=str(nic.ipv4.ip),
                    ipv6=str(nic.ipv6.ip),
                    gateway_mac=nic.gateway_mac,
                    rate_bps=nic.link.rate_bps,
                    base_round_trip_ps=round_trip_ps,
                )
                for nic in host.nics
            ),
        )


def path_round_trip_ps(fabric: FabricSpec, frame_bytes: int) -> int:
    """Return the largest base round-trip time between two hosts; of a host to its leaf where there is one host."""
    if len(fabric.hosts) > 1:
        return base_rtt_ps(longest_path(fabric, frame_bytes), frame_bytes)
    link = fabric.hosts[0].nics[0].link
    return 2 * (link.delay_ps + frame_bytes * 8 * 10**12 // link.rate_bps)


def loaded_round_trip_ps(fabric: FabricSpec, frame_bytes: int) -> int:
    """Return the round trip that windows and timeouts are made for: that of a path which carries other traffic, too.

    On top of the base round trip an acknowledgement waits for a frame that is being sent at every hop. A window of the
    idle path's product would leave links idle.
    """
    if len(fabric.hosts) < 2:
        return 2 * path_round_trip_ps(fabric, frame_bytes)
    path = longest_path(fabric, frame_bytes)
    return base_rtt_ps(path, frame_bytes, frame_bytes)


def default_slot_count(fabric: FabricSpec, ip_version: IpVersion) -> int:
    """Return the slots of a job: two bandwidth-delay products of aggregation packets, a power of two.

    One product keeps the links busy; the second lets ranks run apart by a round trip before they wait.
    """
    product_bytes = 0
    frame_bytes = FRAME_BYTES[ip_version]
    if len(fabric.hosts) > 1:
        path = longest_path(fabric, frame_bytes)
        product_bytes = bandwidth_delay_product_bytes(path, frame_bytes, frame_bytes)
    packets = max(16, -(-2 * product_bytes // frame_bytes))
    return int(min(MAX_SLOTS, 1 << (packets - 1).bit_length()))

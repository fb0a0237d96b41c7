"""The links of a host that a rank's data cross between its memory and its NICs, in either direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from weft.topologies.errors import TopologyError
from weft.topologies.hosts.layout import Accelerator, Distance, HostLayout, HostNic, PciSwitch


@dataclass(frozen=True)
class RouteSettings:
    """How data of a host travel.

    Attributes:
        max_payload_bytes: largest data of a PCIe packet.
        gpudirect: largest distance with GPUDirect RDMA, the name of a `Distance`, or `never`.
        chunk_bytes: pieces in which data are copied to and from host memory.
        copy_latency_ps: fixed time of a copy.
    """

    max_payload_bytes: int = 256
    gpudirect: str = "PXB"
    chunk_bytes: int = 512 * 1024
    copy_latency_ps: int = 0


@dataclass(frozen=True)
class HostLink:
    """One direction of a link, or a memory, which serves both: packets of all ranks of a host cross it in turn."""

    name: str
    rate_bps: int


@dataclass(frozen=True)
class Route:
    """The way between a rank's memory and one of its NICs' ports.

    Attributes:
        device: of the host, by its number.
        distance: from the accelerator; from the NUMA node if there is none.
        fetched: links that data cross to be sent, a memory twice if they are written there and read again.
        placed: links that data cross when received.
        is_staged: whether they go by way of host memory although an accelerator needs them.
        copy_rate_bps: rate of the slowest link between the accelerator and host memory.
    """

    device: int
    distance: Distance
    fetched: tuple[HostLink, ...]
    placed: tuple[HostLink, ...]
    is_staged: bool = False
    copy_rate_bps: int = 0

    @property
    def slowest(self) -> HostLink | None:
        """The link that bounds what is sent; None if nothing does."""
        return min(self.fetched, key=self._rate_bps, default=None)

    @property
    def rate_bps(self) -> int | None:
        """Rate at which data alone in the host can be sent."""
        return None if self.slowest is None else self._rate_bps(self.slowest)

    def _rate_bps(self, link: HostLink) -> int:
        return link.rate_bps // self.fetched.count(link)


@dataclass(frozen=True)
class HostRoutes:
    """The ways of all ranks of a host, which has as many as the fabric says. Raises TopologyError if that cannot be.

    `planes` are the NICs of a rank in the training fabric; with `has_storage` each has one more, the last, in a storage
    network.
    """

    layout: HostLayout
    settings: RouteSettings
    ranks: int
    planes: int
    has_storage: bool = False

    def __post_init__(self) -> None:
        """Check that there are NICs for all ranks and planes."""
        for devices in self.layout.devices_of_ranks(self.ranks):
            if self.planes % min(len(devices), self.planes):
                raise TopologyError(
                    f"{len(devices)} devices of NICs for {self.planes} NICs of a rank in the fabric",
                    place="nics",
                    valid="a divisor",
                )
        if self.has_storage:
            self.layout.storage_devices_of_ranks(self.ranks)

    @property
    def nics(self) -> int:
        """NICs of a rank in the fabric."""
        return self.planes + self.has_storage

    @cached_property
    def routes(self) -> tuple[tuple[Route, ...], ...]:
        """The ways, by rank of a host and number of a NIC in the fabric."""
        found: list[list[Route]] = []
        for rank, devices in enumerate(self.layout.devices_of_ranks(self.ranks)):
            ports = self.planes // min(len(devices), self.planes)
            found.append([self._route(rank, devices[number // ports]) for number in range(self.planes)])
        if self.has_storage:
            for rank, device in enumerate(self.layout.storage_devices_of_ranks(self.ranks)):
                found[rank].append(self._route(rank, device))
        return tuple(map(tuple, found))

    @cached_property
    def links(self) -> tuple[HostLink, ...]:
        """The links that any rank's data cross."""
        every = (route for routes in self.routes for route in routes)
        return tuple(dict.fromkeys(link for route in every for link in (*route.fetched, *route.placed)))

    @property
    def is_staged(self) -> bool:
        """Whether any rank's data go by way of host memory although an accelerator needs them."""
        return any(route.is_staged for routes in self.routes for route in routes)

    def users(self, device: int) -> list[str]:
        """Return the fabric's NICs that a device stands for."""
        return [
            f"rank {rank}, NIC {number}"
            for rank, routes in enumerate(self.routes)
            for number, route in enumerate(routes)
            if route.device == device
        ]

    def _route(self, rank: int, device: int) -> Route:
        nic = self.layout.nics[self.layout.devices[device]]
        nic_name = f"NIC{self.layout.devices.index(self.layout.devices[device])}"
        home = self.layout.home(rank, self.ranks)
        memory = self._memory(home)
        to_nic = self._between(home, self.layout.numa_of(nic.at)) + self._down(nic, nic_name)
        from_nic = self._up(nic, nic_name) + self._between(self.layout.numa_of(nic.at), home)
        if not self.layout.accelerators:
            distance = self.layout.distance_from_memory(home, nic)
            return Route(device, distance, memory + to_nic, from_nic + memory)
        accelerator, name = self.layout.accelerators[rank], f"GPU{rank}"
        distance = self.layout.distance(accelerator, nic)
        out, back = self._up(accelerator, name), self._down(accelerator, name)
        if self._is_direct(accelerator, nic, distance):
            passed = self._passed(accelerator, nic)
            fetched, placed = (
                tuple(link for link in way if link not in passed) for way in (out + to_nic, from_nic + back)
            )
            return Route(device, distance, fetched, placed)
        copy_rate_bps = min(link.rate_bps for link in out + memory)
        fetched, placed = out + memory * 2 + to_nic, from_nic + memory * 2 + back
        return Route(device, distance, fetched, placed, is_staged=True, copy_rate_bps=copy_rate_bps)

    def _is_direct(self, accelerator: Accelerator, nic: HostNic, distance: Distance) -> bool:
        level = self.settings.gpudirect
        if level == "never":
            return False
        if accelerator.rate_bps is not None and self.layout.numa_of(accelerator.at) == self.layout.numa_of(nic.at):
            return True
        # NCCL knows no distance between PHB and SYS: a NUMA node is one host bridge to it.
        return distance <= (Distance.NODE if level == "PHB" else Distance[level])

    def _passed(self, accelerator: Accelerator, nic: HostNic) -> set[HostLink]:
        """Return the links above the switches that both are below: data between the two turn round before."""
        above = self.layout.switches_above(nic.at)
        both = [switch for switch in self.layout.switches_above(accelerator.at) if switch in above]
        return {link for switch in both for link in self._ends(switch, switch.name)}

    def _ends(self, part: PciSwitch | Accelerator | HostNic, name: str) -> tuple[HostLink, HostLink]:
        """Return a part's link towards the host bridge, and back."""
        rate_bps = self.layout.rate_of(part, self.settings.max_payload_bytes)
        return HostLink(f"{name}->{part.at}", rate_bps), HostLink(f"{part.at}->{name}", rate_bps)

    def _up(self, part: Accelerator | HostNic, name: str) -> tuple[HostLink, ...]:
        """Return the links from a part to its host bridge."""
        switches = self.layout.switches_above(part.at)
        return (self._ends(part, name)[0], *(self._ends(each, each.name)[0] for each in switches))

    def _down(self, part: Accelerator | HostNic, name: str) -> tuple[HostLink, ...]:
        switches = reversed(self.layout.switches_above(part.at))
        return (*(self._ends(each, each.name)[1] for each in switches), self._ends(part, name)[1])

    def _between(self, numa: int, other: int) -> tuple[HostLink, ...]:
        one, two = self.layout.numa[numa].socket, self.layout.numa[other].socket
        if one == two or self.layout.socket_link_bps is None:
            return ()
        return (HostLink(f"socket{one}->socket{two}", self.layout.socket_link_bps),)

    def _memory(self, numa: int) -> tuple[HostLink, ...]:
        rate_bps = self.layout.numa[numa].memory_bps
        return () if rate_bps is None else (HostLink(f"memory of numa{numa}", rate_bps),)

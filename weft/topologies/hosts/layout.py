"""The parts of a host, and how far they are from each other, by the definitions of `nvidia-smi topo -m`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from weft.topologies.errors import TopologyError
from weft.topologies.hosts.pcie import PcieLink

MOST_PARTS = 64
"""Most NUMA nodes, switches, accelerators or NICs of a host."""
_NUMA = re.compile(r"numa(\d{1,2})(?:/([A-Za-z0-9_.-]{1,24}))?")


class Distance(IntEnum):
    """How far two parts of a host are from each other, nearest first."""

    PIX = 1
    PXB = 2
    PHB = 3
    NODE = 4
    SYS = 5


MEANINGS: Mapping[str, str] = {
    "X": "Self",
    "SYS": "Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)",
    "NODE": "Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node",
    "PHB": "Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
    "PXB": "Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)",
    "PIX": "Connection traversing at most a single PCIe bridge",
    "NV#": "Connection traversing a bonded set of # NVLinks",
}
"""The legend of `nvidia-smi topo -m`, in its words and order."""


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node: its socket, its processors as Linux lists them, the bandwidth of its memory (None: unlimited)."""

    socket: int = 0
    cpus: str = ""
    memory_bps: int | None = None


@dataclass(frozen=True)
class PciSwitch:
    """A PCIe switch, or a bridge of one; `at` is what its upstream link leads to."""

    name: str
    at: str
    pcie: str = "5x16"


@dataclass(frozen=True)
class Accelerator:
    """An accelerator. `rate_bps`: each way, of a link other than PCIe, such as NVLink-C2C."""

    at: str
    pcie: str = "5x16"
    rate_bps: int | None = None


@dataclass(frozen=True)
class HostNic:
    """A NIC. Each of its `ports` is a device of its own; ranks do not use devices of storage."""

    at: str
    pcie: str = "5x16"
    ports: int = 1
    is_storage: bool = False


@dataclass(frozen=True)
class HostLayout:
    """The inside of a host.

    `at` of a part is a switch's name, `numa1` (a host bridge of its own in that NUMA node) or `numa1/a` (one that all
    parts at `numa1/a` share).

    Attributes:
        numa: its NUMA nodes.
        socket_link_bps: rate from each socket to each other one; None without limit.
        switches: PCIe switches.
        accelerators: GPU0, GPU1, …
        nics: their devices are NIC0, NIC1, …
        nvlinks: NVLinks of each accelerator to the others, 0 for none.
    """

    numa: tuple[NumaNode, ...]
    socket_link_bps: int | None = None
    switches: tuple[PciSwitch, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    nics: tuple[HostNic, ...] = ()
    nvlinks: int = 0

    def __post_init__(self) -> None:
        """Check that every part is at another one. Raises TopologyError with the part as place."""
        for what, parts in (("numa", self.numa), ("nics", self.devices)):
            if not 1 <= len(parts) <= MOST_PARTS:
                raise TopologyError(f"{len(parts)} of them", place=what, valid=f"1 to {MOST_PARTS}")
        names = [switch.name for switch in self.switches]
        for number, name in enumerate(names):
            if name in names[:number] or _NUMA.fullmatch(name):
                problem = "is used twice" if name in names[:number] else "means a NUMA node"
                raise TopologyError(f"{name!r} {problem}", place=f"switches[{number}].name")
        for key, part in self._parts():
            self._ancestors(part.at, f"{key}.at")

    def _parts(self) -> Iterator[tuple[str, PciSwitch | Accelerator | HostNic]]:
        parts: Sequence[tuple[str, Sequence[PciSwitch | Accelerator | HostNic]]] = (
            ("switches", self.switches),
            ("accelerators", self.accelerators),
            ("nics", self.nics),
        )
        for key, found in parts:
            yield from ((f"{key}[{number}]", part) for number, part in enumerate(found))

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The NIC of each device."""
        return tuple(number for number, nic in enumerate(self.nics) for _ in range(nic.ports))

    @cached_property
    def switch_by_name(self) -> Mapping[str, PciSwitch]:
        """The switches."""
        return {switch.name: switch for switch in self.switches}

    def switches_above(self, at: str) -> list[PciSwitch]:
        """Return the switches from a place up to the host bridge."""
        return self._ancestors(at, "at")[0]

    def numa_of(self, at: str) -> int:
        """Return the NUMA node above a place."""
        return self._ancestors(at, "at")[1]

    def _ancestors(self, at: str, place: str) -> tuple[list[PciSwitch], int, str | None]:
        """Return the switches above a place, its NUMA node, and the name of the host bridge if it has one."""
        above: list[PciSwitch] = []
        while (switch := self.switch_by_name.get(at)) is not None:
            if switch in above:
                raise TopologyError(f"{switch.name!r} is below itself", place=place)
            above.append(switch)
            at = switch.at
        found = _NUMA.fullmatch(at)
        if found is None or int(found[1]) >= len(self.numa):
            nodes = [f"numa{number}" for number in range(len(self.numa))]
            raise TopologyError(f"nothing is called {at!r}", place=place, valid=[*nodes, *self.switch_by_name])
        return above, int(found[1]), found[2]

    def distance(self, one: Accelerator | HostNic, other: Accelerator | HostNic) -> Distance:
        """Return how far two different parts are from each other, or two ports of one NIC."""
        (switches, numa, bridge), (others, other_numa, other_bridge) = (
            self._ancestors(part.at, "at") for part in (one, other)
        )
        if one is other:
            return Distance.PIX
        if switches and others and switches[0] == others[0]:
            return Distance.PIX
        if switches and others and switches[-1] == others[-1]:
            return Distance.PXB
        if numa != other_numa:
            return Distance.SYS
        return Distance.PHB if bridge is not None and bridge == other_bridge else Distance.NODE

    @cached_property
    def compute_devices(self) -> tuple[int, ...]:
        """Devices that ranks use, by number."""
        return tuple(number for number, nic in enumerate(self.devices) if not self.nics[nic].is_storage)

    def devices_of_ranks(self, ranks: int) -> list[list[int]]:
        """Return the devices of each rank: the nearest ones, shared out evenly, as NCCL does.

        Rank i is accelerator i; without accelerators ranks are spread over the NUMA nodes. Raises TopologyError if
        ranks and accelerators differ in number, or NICs cannot be shared out.
        """
        if self.accelerators and ranks != len(self.accelerators):
            raise TopologyError(
                f"{len(self.accelerators)} accelerators for {ranks} ranks of a host",
                place="accelerators",
                valid=f"{ranks}, or fabric.ranks_per_host: {len(self.accelerators)}",
            )
        each, over = divmod(len(self.compute_devices), ranks)
        if over or not each:
            raise TopologyError(
                f"{len(self.compute_devices)} devices of NICs cannot be shared out evenly among {ranks} ranks",
                place="nics",
                valid="a multiple",
            )
        found: list[list[int]] = [[] for _ in range(ranks)]
        taken: set[int] = set()
        for _, rank, device in sorted(
            (self._nearness(rank, ranks, device), rank, device)
            for rank in range(ranks)
            for device in self.compute_devices
        ):
            if device not in taken and len(found[rank]) < each:
                found[rank].append(device)
                taken.add(device)
        return found

    def storage_devices_of_ranks(self, ranks: int) -> list[int]:
        """Return the storage device of each rank: the nearest one; of equally near ones, that of the fewest ranks.

        Raises TopologyError if the host has none.
        """
        devices = [number for number, nic in enumerate(self.devices) if self.nics[nic].is_storage]
        if not devices:
            raise TopologyError(
                "the fabric has a storage network, and the host no NIC for it",
                place="nics",
                valid="one with `storage: true`",
            )
        users = Counter[int]()
        found = []
        for rank in range(ranks):
            nearest = min(devices, key=lambda device: (self._nearness(rank, ranks, device), users[device]))
            users[nearest] += 1
            found.append(nearest)
        return found

    def home(self, rank: int, ranks: int) -> int:
        """Return the NUMA node of a rank."""
        if self.accelerators:
            return self.numa_of(self.accelerators[rank].at)
        return rank * len(self.numa) // ranks

    def _nearness(self, rank: int, ranks: int, device: int) -> Distance:
        nic = self.nics[self.devices[device]]
        if self.accelerators:
            return self.distance(self.accelerators[rank], nic)
        return self.distance_from_memory(self.home(rank, ranks), nic)

    def distance_from_memory(self, numa: int, nic: HostNic) -> Distance:
        """Return how far a NIC is from the memory of a NUMA node: `PHB` if it is there."""
        there = self.numa_of(nic.at)
        return Distance.PHB if there == numa else Distance.SYS

    def rate_of(self, part: PciSwitch | Accelerator | HostNic, max_payload_bytes: int) -> int:
        """Return the rate of data on the link above a part, in each direction."""
        if isinstance(part, Accelerator) and part.rate_bps is not None:
            return part.rate_bps
        return PcieLink.read(part.pcie).rate_bps(max_payload_bytes)

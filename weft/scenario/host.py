"""Section of a scenario file on the inside of hosts (docs/host.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from weft.errors import translated
from weft.quantities.definitions import SIZE, Rate, ShortTime, whole
from weft.quantities.example import Example
from weft.quantities.units import PS_PER_S
from weft.scenario.places import KeyProblem
from weft.scenario.values import Name, Section, SectionKeyError, Text
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.hosts.known import HOST_LAYOUTS
from weft.topologies.hosts.layout import MOST_PARTS, Accelerator, HostLayout, HostNic, NumaNode, PciSwitch
from weft.topologies.hosts.pcie import PCIE
from weft.topologies.hosts.routes import HostRoutes, RouteSettings

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions

_Pcie = Annotated[str, PCIE]
_Place = Annotated[str, Text("a switch, numa1 or numa1/a", r"\A[A-Za-z][A-Za-z0-9_./-]{0,31}\Z", "numa0")]
_OWN = ("socket_link", "switches", "accelerators", "nics", "nvlinks")


class NumaSection(Section):
    """A NUMA node."""

    socket: Annotated[int, whole(0, 15, example="1")] = 0
    """Its socket."""
    cpus: Annotated[str, Text("a list of processors as in Linux", r"\A[0-9,-]{1,200}\Z", "0-55,112-167")] | None = None
    """Its processors."""
    memory: Annotated[Rate | None, Example("2457600Mb/s")] = None
    """Bandwidth of its memory, reads and writes together; unlimited by default."""

    def node(self) -> NumaNode:
        """Return the node."""
        return NumaNode(self.socket, self.cpus or "", self.memory)


class PciSwitchSection(Section):
    """A PCIe switch, or a bridge of one."""

    name: Annotated[str, Text("a name", r"\A[A-Za-z][A-Za-z0-9_.-]{0,23}\Z", "sw0")]
    """Its name."""
    at: _Place
    """Where its upstream link leads: a switch's name, `numa1` (a host bridge of its own) or `numa1/a` (one that all
    parts at `numa1/a` share)."""
    pcie: _Pcie = "5x16"
    """Its upstream link: generation and lanes."""


class AcceleratorSection(Section):
    """An accelerator: rank i of a host has the i-th."""

    at: _Place
    """Where its link leads, as for a switch."""
    pcie: _Pcie = "5x16"
    """Its link: generation and lanes."""
    rate: Annotated[Rate | None, Example("1800Gb/s")] = None
    """Rate of a link that is not PCIe (NVLink-C2C), in each direction."""


class HostNicSection(Section):
    """A NIC of a host."""

    at: _Place
    """Where its link leads, as for a switch."""
    pcie: _Pcie = "5x16"
    """Its link: generation and lanes."""
    ports: Annotated[int, whole(1, 4, example="2")] = 1
    """Ports, each a device."""
    storage: bool = False
    """Ranks do not use it."""


class StagingSection(Section):
    """Copies between an accelerator and host memory where it has no GPUDirect RDMA to its NIC."""

    chunk: Annotated[int, SIZE.between(4096, 64 * 2**20, example="512KiB")] = 512 * 1024
    """Data are copied chunk by chunk; a NIC may send a chunk when it has been copied. NCCL's chunks in its protocol
    Simple have 512 KiB: NCCL_BUFFSIZE, 4 MiB, in 8 steps."""
    latency: ShortTime = 0
    """Fixed time of a copy."""


class HostSection(Section):
    """The inside of every host: NUMA nodes, PCIe switches, accelerators and NICs. Data of RoCEv2 packets cross the
    links between an accelerator and its NIC, which ranks of a host share (docs/host.md). Without this section they
    cost nothing.

    Give a `layout` by name, or `numa`, `nics` and what else there is.
    """

    layout: Annotated[str | None, Name("layout of a host", lambda: HOST_LAYOUTS), Example("server-2s")] = None
    """A well-known machine."""
    numa: Annotated[list[NumaSection] | None, Field(min_length=1, max_length=MOST_PARTS)] = None
    """NUMA nodes: numa0, numa1, …"""
    socket_link: Annotated[Rate | None, Example("176Gb/s")] = None
    """Rate from each socket to each other one (UPI, xGMI); unlimited by default."""
    switches: Annotated[list[PciSwitchSection], Field(max_length=MOST_PARTS)] = Field(default=[])
    """PCIe switches."""
    accelerators: Annotated[list[AcceleratorSection], Field(max_length=MOST_PARTS)] = Field(default=[])
    """Accelerators: GPU0, GPU1, …; without any, data are in the memory of a NUMA node."""
    nics: Annotated[list[HostNicSection], Field(max_length=MOST_PARTS)] = Field(default=[])
    """NICs, with the ports NIC0, NIC1, …; each rank uses the nearest."""
    nvlinks: Annotated[int, whole(0, 64, example="18")] = 0
    """NVLinks of an accelerator to the others, for the matrix; `fabric.scale_up` has their rate."""
    max_payload: Annotated[Literal[128, 256, 512, 1024], Example("512")] = 256
    """Largest data of a PCIe packet, in bytes."""
    gpudirect: Literal["never", "PIX", "PXB", "PHB", "SYS"] = "PXB"
    """Largest distance of an accelerator and a NIC with GPUDirect RDMA, as NCCL_NET_GDR_LEVEL; beyond it data go by way
    of host memory. Accelerators with another link than PCIe have it at their NUMA node, as with NCCL's P2C."""
    staging: StagingSection = StagingSection()

    @model_validator(mode="after")
    def _check_given(self) -> HostSection:
        own = [name for name in ("numa", *_OWN) if name in self.model_fields_set and getattr(self, name)]
        if self.layout is not None and own:
            raise SectionKeyError(own[0], f"excludes layout {self.layout}", valid="one of them")
        if self.layout is not None and self.layout not in HOST_LAYOUTS:
            raise SectionKeyError("layout", f"no layout of a host {self.layout!r}", valid=HOST_LAYOUTS)
        if self.layout is None and self.numa is None:
            raise SectionKeyError("layout", "is missing", valid=[*HOST_LAYOUTS, "numa and nics"])
        return self

    def described(self) -> HostLayout:
        """Return the layout. Raises KeyProblem for parts that do not fit each other."""
        if self.layout is not None:
            return HOST_LAYOUTS[self.layout]
        with translated(TopologyError, _host_problem):
            return HostLayout(
                tuple(each.node() for each in self.numa or ()),
                self.socket_link,
                tuple(PciSwitch(each.name, each.at, each.pcie) for each in self.switches),
                tuple(Accelerator(each.at, each.pcie, each.rate) for each in self.accelerators),
                tuple(HostNic(each.at, each.pcie, each.ports, each.storage) for each in self.nics),
                self.nvlinks,
            )

    def round_trip_ps(self, payload_bytes: int) -> int:
        """Return how long a packet takes on the slowest link of a host, twice: at either end of its path."""
        layout = self.described()
        parts: tuple[PciSwitch | Accelerator | HostNic, ...] = (*layout.switches, *layout.accelerators, *layout.nics)
        rates = [layout.rate_of(part, self.max_payload) for part in parts]
        rates += [rate for rate in (layout.socket_link_bps, *(each.memory_bps for each in layout.numa)) if rate]
        return 2 * payload_bytes * 8 * PS_PER_S // min(rates)

    def routes(self, fabric: FabricSpec) -> HostRoutes:
        """Return the ways of a host's data in a fabric. Raises KeyProblem if ranks and NICs do not fit."""
        settings = RouteSettings(self.max_payload, self.gpudirect, self.staging.chunk, self.staging.latency)
        layout = self.described()
        with translated(TopologyError, _host_problem):
            has_storage = fabric.storage_plane is not None
            return HostRoutes(layout, settings, fabric.ranks_per_host, fabric.training_nics, has_storage)


def _host_problem(error: TopologyError) -> KeyProblem:
    return KeyProblem(f"host.{error.place}" if error.place else "host", error.problem, valid=error.valid)


def host_section(options: FabricOptions) -> HostSection | None:
    """Return a scenario's section; None without one."""
    return options.host if isinstance(options.host, HostSection) else None


def host_routes(fabric: FabricSpec, options: FabricOptions) -> HostRoutes | None:
    """Return the ways of data in a fabric's hosts; None without a section. Raises KeyProblem."""
    section = host_section(options)
    return None if section is None else section.routes(fabric)


def check_host(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that the section goes with the fabric and the other options. Raises KeyProblem."""
    if options.clock == "real":
        raise KeyProblem("host", "does not go with clock: real, where each rank is a process", valid="clock: virtual")
    if options.nic.pcie_rate is not None:
        raise KeyProblem("nic.pcie_rate", "does not go with host, which has a link for each NIC", valid="one of them")
    if fabric.is_scale_up:
        raise KeyProblem("host", "does not go with fabric.kind: scale_up, where accelerators have no NICs")
    host_routes(fabric, options)

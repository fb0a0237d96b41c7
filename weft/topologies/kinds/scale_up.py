"""Scale-up domains: accelerators with links to the same switches, as NVLink and UALink join them, in one or two tiers.

An accelerator is a host, and each of its links is a NIC. A plane is a first-tier switch, and with a second tier the
switches of that number in all domains and the switches above them: planes meet at accelerators only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from weft.quantities.definitions import Rate, ShortTime, whole
from weft.quantities.example import Example
from weft.topologies.addressing import MAX_PLANES, MAX_PORTS
from weft.topologies.builder import FabricBuilder, NewSwitch, require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import DEFAULT_TREE_CHILDREN, FabricSpec
from weft.topologies.kinds.base import TopologyKeyError, TopologyKind, TopologySection
from weft.topologies.limits import PlaneLinks

NAME: Final = "scale_up"
MOST_ACCELERATORS = 576
MOST_LINKS = 144
"""Most links of an accelerator."""
_DELAY_PS = 100_000
_TREE_CHILDREN = (DEFAULT_TREE_CHILDREN, 64, 128)
"""Widths of the bitmap in which a switch notes who has contributed to a sum."""
SystemName = Literal["dgx-h100", "dgx-h100-256", "nvl72", "nvl576", "ualink-72"]


@dataclass(frozen=True)
class System:
    """Counts and rates of a scale-up domain.

    Attributes:
        accelerators: of the whole fabric.
        switches: first-tier switches of an accelerator, each in a separate plane.
        links: links of an accelerator, shared out over its switches as evenly as possible, the first ones first.
        link_rate_bps: rate of every link.
        domain: accelerators of the same first-tier switches.
        upper_switches: second-tier switches of a plane; 0 with a single domain.
        oversubscription: links of a first-tier switch to accelerators, divided by its links to the second tier.
    """

    accelerators: int = 8
    switches: int = 4
    links: int = 4
    link_rate_bps: int = 200 * 10**9
    domain: int = 8
    upper_switches: int = 0
    oversubscription: int = 1

    @property
    def links_of_planes(self) -> list[int]:
        """An accelerator's links to its switch of each plane."""
        each, more = divmod(self.links, self.switches)
        return [each + (plane < more) for plane in range(self.switches)]

    @property
    def domains(self) -> int:
        """Groups of accelerators with the same first-tier switches."""
        return self.accelerators // self.domain

    @property
    def tree_children(self) -> int:
        """Width of switches' bitmaps: the narrowest that holds all children of a switch, as far as there is one."""
        most = max(self.domain, self.domains if self.upper_switches else 0)
        return next((width for width in _TREE_CHILDREN if width >= most), _TREE_CHILDREN[-1])

    def problem(self) -> tuple[str, str, str] | None:
        """Return the first parameter that does not fit the others, why, and what would be valid; None if all fit."""
        if self.links < self.switches:
            return "links", f"{self.links} do not reach {self.switches} switches", f"at least {self.switches}"
        if self.domain > self.accelerators or self.accelerators % self.domain:
            fitting = [str(each) for each in range(2, self.accelerators + 1) if self.accelerators % each == 0]
            return "domain", f"{self.domain} do not divide {self.accelerators} accelerators", ", ".join(fitting)
        if self.domains > 1 and not self.upper_switches:
            return "upper_switches", f"0 cannot join {self.domains} domains", "at least 1"
        if self.domains == 1 and self.upper_switches:
            return "upper_switches", "a single domain has no second tier", "0, or a smaller domain"
        return self._problem_of_ports()

    def _problem_of_ports(self) -> tuple[str, str, str] | None:
        for links in set(self.links_of_planes):
            down = self.domain * links
            if not self.upper_switches:
                up = above = 0
            elif down % (self.oversubscription * self.upper_switches):
                per = f"{self.upper_switches} upper switches at an oversubscription of {self.oversubscription}"
                return (
                    "upper_switches",
                    f"{down} links of a first-tier switch are not shared evenly by {per}",
                    "a divisor",
                )
            else:
                up = down // self.oversubscription
                above = up // self.upper_switches * self.domains
            for ports, what in ((down + up, "first"), (above, "second")):
                if ports > MAX_PORTS:
                    key = "upper_switches" if what == "second" else "domain"
                    return key, f"a {what}-tier switch would have {ports} ports", f"at most {MAX_PORTS}"
        return None


SYSTEMS: Mapping[str, System] = {
    # NVIDIA, "Upgrading Multi-GPU Interconnectivity with the Third-Generation NVIDIA NVSwitch": NVLink 4, 18 links of
    # 25 GB/s each way; NVIDIA's slides on NVSwitch (Hot Chips 34): 5, 4, 4 and 5 links to four switches, which have 20,
    # 16, 16 and 20 links to a second tier. The second tier's switches in a plane are assumed.
    "dgx-h100": System(8, 4, 18, 200 * 10**9, domain=8),
    "dgx-h100-256": System(256, 4, 18, 200 * 10**9, domain=8, upper_switches=4, oversubscription=2),
    # NVIDIA, "NVLink and NVLink Switch", and the GB200 multi-node tuning guide: NVLink 5, 18 links of 50 GB/s each way,
    # nine trays of two switches. NVLink 5 joins up to 576 GPUs; the second tier as a whole is assumed.
    "nvl72": System(72, 18, 18, 400 * 10**9, domain=72),
    "nvl576": System(576, 18, 18, 400 * 10**9, domain=72, upper_switches=8),
    # AMD's Helios as announced in 2025: 72 accelerators, 3.6 TB/s each, both ways together; UALink 200G: stations of
    # 800 Gb/s. The number of switches is assumed.
    "ualink-72": System(72, 18, 18, 800 * 10**9, domain=72),
}


class ScaleUpDomainSection(TopologySection):
    """Accelerators of a scale-up domain and their switches. Switches of the first tier are leaves, others spines."""

    refused: ClassVar[Mapping[str, str]] = {
        "planes": "`switches` says how many",
        "hosts_per_leaf": "`domain` says how many",
        "host_rate": "`link_rate` says it",
        "ranks_per_host": "each accelerator is a host",
        "rail_optimised": "each accelerator is a host",
        "host_file": "each accelerator is a host",
        "scale_up": "the fabric itself is the scale-up network",
    }

    is_scale_up: ClassVar[bool] = True

    kind: Literal["scale_up"] = NAME
    """A scale-up network as a fabric of its own."""
    system: Annotated[SystemName | None, Example("dgx-h100")] = None
    """Counts and rates of a system, for the keys below that are not given."""
    accelerators: Annotated[int, whole(2, MOST_ACCELERATORS, example="8")] | None = None
    """Accelerators, each a host (h0, h1, …); by default the system's, or 8."""
    switches: Annotated[int, whole(1, MAX_PLANES, example="2")] | None = None
    """First-tier switches of each accelerator; each is in a plane of its own. By default the system's, or 4."""
    links: Annotated[int, whole(1, MOST_LINKS, example="4")] | None = None
    """Links of an accelerator, shared out over its switches as evenly as possible; each is a NIC. By default the
    system's, or one to each switch."""
    link_rate: Annotated[Rate | None, Example("200Gb/s")] = None
    """Rate of every link; by default the system's, or 200 Gb/s."""
    domain: Annotated[
        Annotated[int, whole(2, MOST_ACCELERATORS)] | None, Example("4", (".accelerators=8", ".upper_switches=2"))
    ] = None
    """Accelerators with the same first-tier switches; by default the system's, or all."""
    upper_switches: Annotated[
        Annotated[int, whole(0, MAX_PORTS)] | None, Example("2", (".accelerators=8", ".domain=4"))
    ] = None
    """Second-tier switches of each plane; several domains need at least one."""
    oversubscription: Annotated[
        Annotated[int, whole(1, MAX_PORTS)] | None,
        Example("2", (".accelerators=8", ".domain=4", ".upper_switches=2")),
    ] = None
    """Links of a first-tier switch to accelerators, divided by its links to the second tier; by default the system's,
    or 1."""
    delay: ShortTime = _DELAY_PS
    """Propagation delay of every link, one way."""

    @property
    def shape(self) -> System:
        """All counts and rates, given or by default."""
        shape = System() if self.system is None else SYSTEMS[self.system]
        given: dict[str, Any] = {
            name: value
            for name in ("accelerators", "switches", "links", "domain", "upper_switches", "oversubscription")
            if (value := getattr(self, name)) is not None
        }
        if self.link_rate is not None:
            given["link_rate_bps"] = self.link_rate
        if shape.upper_switches == 0 and "accelerators" in given:
            given.setdefault("domain", self.accelerators)
        if shape.links == shape.switches and "switches" in given:
            given.setdefault("links", self.switches)
        return replace(shape, **given)

    @property
    def leaf_count(self) -> int:
        """First-tier switches of a plane."""
        return self.shape.domains

    @property
    def nics_per_host(self) -> int:
        """Links of every accelerator."""
        return self.shape.links

    @property
    def endpoints_per_leaf(self) -> int:
        """Accelerators of a domain."""
        return self.shape.domain

    def check(self) -> None:
        """Check that counts fit each other, and the shared keys."""
        if (problem := self.shape.problem()) is not None:
            key, why, valid = problem
            raise TopologyKeyError(key, why, valid=valid)
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric."""
        return scale_up(**asdict(self.shape), delay_ps=self.delay, queue_capacity_bytes=self.queue_capacity)


def scale_up(
    accelerators: int = 8,
    switches: int = 4,
    links: int = 4,
    link_rate_bps: float = 200e9,
    domain: int = 8,
    upper_switches: int = 0,
    oversubscription: int = 1,
    delay_ps: int = _DELAY_PS,
    queue_capacity_bytes: int | None = None,
) -> FabricSpec:
    """Describe a scale-up domain: accelerators, each with its links to every first-tier switch of its domain.

    Args:
        accelerators, switches, links, link_rate_bps, domain, upper_switches, oversubscription: see `System`.
        delay_ps: propagation delay of every link.
        queue_capacity_bytes: queue of every transmitting port; by default by its rate (`weft.topologies.port_memory`).

    Raises:
        TopologyError: a parameter is out of range, or does not fit others; the message gives what is valid.

    """
    plane_links = PlaneLinks.checked(link_rate_bps, None, delay_ps, queue_capacity_bytes)
    system = System(
        require_range("accelerators", accelerators, 2, MOST_ACCELERATORS),
        require_range("switches", switches, 1, MAX_PLANES),
        require_range("links", links, 1, MOST_LINKS),
        plane_links.host_rate_bps,
        require_range("domain", domain, 2, MOST_ACCELERATORS),
        require_range("upper_switches", upper_switches, 0, MAX_PORTS),
        require_range("oversubscription", oversubscription, 1, MAX_PORTS),
    )
    if (problem := system.problem()) is not None:
        key, why, valid = problem
        raise TopologyError(f"{key}: {why}", valid=valid)
    require_links(accelerators * links, f"accelerators={accelerators} of links={links}")
    builder = FabricBuilder()
    first_tier = [
        [builder.add_switch(plane, "leaf", group=domain) for domain in range(system.domains)]
        for plane in range(system.switches)
    ]
    for number in range(system.accelerators):
        reached = [
            of_plane[number // system.domain]
            for of_plane, count in zip(first_tier, system.links_of_planes, strict=True)
            for _ in range(count)
        ]
        builder.add_host(reached, plane_links.host_link)
    for plane, (of_plane, count) in enumerate(zip(first_tier, system.links_of_planes, strict=True)):
        _add_second_tier(builder, system, plane, of_plane, count, plane_links)
    return builder.build(
        {
            "kind": NAME,
            **asdict(system),
            "delay_ps": plane_links.delay_ps,
            "queue_capacity_bytes": plane_links.queue_capacity_bytes,
        },
        system.tree_children,
        is_scale_up=True,
    )


def _add_second_tier(
    builder: FabricBuilder, system: System, plane: int, below: Sequence[NewSwitch], links: int, of_plane: PlaneLinks
) -> None:
    if not system.upper_switches:
        return
    parallel = system.domain * links // system.oversubscription // system.upper_switches
    for upper in [builder.add_switch(plane, "spine") for _ in range(system.upper_switches)]:
        for switch in below:
            for _ in range(parallel):
                builder.add_link(switch, upper, of_plane.fabric_link)


KIND = TopologyKind(NAME, ScaleUpDomainSection, scale_up, is_up_down=True)

"""Scale-up domains: accelerators with links to the same switches, as NVLink and UALink join them, in one or two tiers.

An accelerator is a host, and each of its links is a NIC. A plane is a first-tier switch, and with a second tier the
switches of that number in all domains and the switches above them: planes meet at accelerators only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from weft.quantities.definitions import Rate, ShortTime, whole
from weft.quantities.example import Example
from weft.topologies.addressing import MAX_PLANES, MAX_PORTS
from weft.topologies.builder import FabricBuilder, NewSwitch, require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.kinds.base import TopologyKeyError, TopologyKind, TopologySection
from weft.topologies.limits import PlaneLinks
from weft.topologies.scale_up_systems import SYSTEMS, System, SystemName

NAME: Final = "scale_up"
MOST_ACCELERATORS = 576
MOST_LINKS = 144
"""Most links of an accelerator."""
_DELAY_PS = 100_000


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
        "storage_network": "accelerators have no NICs",
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

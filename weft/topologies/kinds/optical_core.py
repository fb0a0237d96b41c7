"""Leaves with an optical core: circuit switches replace the spines and join the leaves in pairs.

Uplink n of every leaf leads to circuit switch n, which holds one matching of the leaves at a time. Packets between
leaves without a common circuit pass through other leaves. After W. Mellette et al., RotorNet (SIGCOMM 2017: matchings
that together join all pairs of leaves), and M. Ghobadi et al., ProjecToR (SIGCOMM 2016: pairs with more traffic).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, Unpack

from pydantic import Field

from weft.quantities.definitions import Rate, whole
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import FabricBuilder, require_configurations
from weft.topologies.circuits import MOST_CONFIGURATIONS, CircuitConfiguration, ConfigurationName
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.flat import FlatParameters
from weft.topologies.kinds.base import CircuitsSection, TopologyKind
from weft.topologies.limits import LinkArguments

NAME: Final = "optical_core"
MOST_LEAVES = 4096
_DEFAULT_MATCHINGS: Mapping[str, Sequence[int]] = {"all": (0, 1, 2)}
Matchings = Annotated[list[Annotated[int, whole(0, MOST_LEAVES - 1)]], Field(min_length=1, max_length=MAX_PORTS)]


class OpticalCoreSection(CircuitsSection):
    """Leaves joined in pairs by circuit switches, one for each uplink of a leaf."""

    kind: Literal["optical_core"] = NAME
    """Leaves joined by circuits; a section with `matchings` is of this kind."""
    leaves: Annotated[int, whole(2, MOST_LEAVES)] = 4
    """Leaves of each plane."""
    matchings: Annotated[dict[ConfigurationName, Matchings], Field(min_length=1, max_length=MOST_CONFIGURATIONS)] = (
        Field({"all": [0, 1, 2]})
    )
    """Configurations of the circuits by name: for each uplink of a leaf, the matching that its circuit switch holds.
    `{all: [0, 1, 2], twice: [0, 0, 1]}` for leaves with three uplinks. An even number n of leaves has n - 1 matchings;
    an odd n has n, each leaving one leaf dark. Together the matchings join every two leaves once."""
    fabric_rate: Rate | None = None
    """Rate of the circuits; by default `host_rate`."""

    @property
    def leaf_count(self) -> int:
        """Leaves of a plane."""
        return self.leaves

    def check(self) -> None:
        """Check that the matchings exist, with equal numbers in all configurations, and the shared keys."""
        self.check_configurations("matchings", lambda: checked_matchings(self.leaves, self.matchings))
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return optical_core(
            leaves=self.leaves,
            matchings=self.matchings,
            configuration=self.configuration,
            **self.flat_arguments(),
        )


def optical_core(
    planes: int = 1,
    leaves: int = 4,
    matchings: Mapping[str, Sequence[int]] = _DEFAULT_MATCHINGS,
    configuration: str | None = None,
    hosts_per_switch: int = 1,
    **links: Unpack[LinkArguments],
) -> FabricSpec:
    """Describe `planes` of leaves joined by circuits; the planes share their hosts.

    Args:
        planes: independent planes; a host has one NIC in each.
        leaves: leaves of a plane.
        matchings: configurations of the circuits by name: the matching (see `matching`) of each uplink's switch.
        configuration: the initial configuration; the first by default.
        hosts_per_switch: hosts on each leaf.
        links: rates (the fabric rate is of the circuits), delay and queues (`weft.topologies.limits.LinkArguments`).

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    leaves = require_range("leaves", leaves, 2, MOST_LEAVES)
    checked = checked_matchings(leaves, matchings)
    parameters = FlatParameters.checked(planes, hosts_per_switch, **links)
    uplinks = len(next(iter(checked.values())))
    link_count = parameters.planes * leaves * (parameters.hosts_per_switch + uplinks)
    require_configurations(len(checked), link_count, f"{leaves} leaves of {uplinks} uplinks")
    builder = FabricBuilder()
    of_planes = [[builder.add_switch(plane, "leaf") for _ in range(leaves)] for plane in range(parameters.planes)]
    builder.add_hosts(of_planes, parameters.hosts_per_switch, parameters.links.host_link)
    ports = []
    for plane, of_plane in enumerate(of_planes):
        core = [builder.add_circuit_switch(plane) for _ in range(uplinks)]
        ports.append(
            [[builder.add_circuit_port(leaf, at, parameters.links.fabric_link) for at in core] for leaf in of_plane]
        )
    builder.set_configurations(
        [
            CircuitConfiguration(
                name,
                tuple(
                    (of_plane[a][uplink], of_plane[b][uplink])
                    for of_plane in ports
                    for uplink, number in enumerate(numbers)
                    for a, b in matching(leaves, number)
                ),
            )
            for name, numbers in checked.items()
        ],
        next(iter(checked)) if configuration is None else configuration,
    )
    return builder.build({"kind": NAME, "leaves": leaves, "matchings": checked, **parameters.described})


def matching_count(leaves: int) -> int:
    """Return how many matchings together join every two leaves once."""
    return leaves - 1 if leaves % 2 == 0 else leaves


def matching(leaves: int, number: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a matching, the lower leaf first: a round of a tournament by the circle method."""
    around = matching_count(leaves)
    if leaves % 2 == 0:
        yield number, leaves - 1
    for step in range(1, (around + 1) // 2):
        a, b = (number + step) % around, (number - step) % around
        yield min(a, b), max(a, b)


def checked_matchings(leaves: int, matchings: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Check the configurations and return them.

    Raises:
        TopologyError: there are none, a matching does not exist, or configurations have different numbers of uplinks.

    """
    if not matchings:
        raise TopologyError("matchings has no configuration", valid="at least 1")
    checked: dict[str, tuple[int, ...]] = {}
    first = next(iter(matchings))
    for name, numbers in matchings.items():
        if not numbers or len(numbers) != len(matchings[first]):
            raise TopologyError(
                f"{name} has {len(numbers)} matchings, {first} {len(matchings[first])}",
                valid="one for each uplink",
            )
        checked[name] = tuple(
            require_range(f"{name}: matching", number, 0, matching_count(leaves) - 1) for number in numbers
        )
    return checked


KIND = TopologyKind(NAME, OpticalCoreSection, optical_core, implied_by=("matchings",))

"""A topology from a file or folder, of one of the formats in `weft.topologies.files.formats`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from weft.errors import translated
from weft.hints import did_you_mean
from weft.quantities.definitions import whole
from weft.quantities.example import Example
from weft.quantities.names import Name
from weft.quantities.units import shown
from weft.topologies.addressing import MAX_PLANES
from weft.topologies.builder import FabricBuilder, NewSwitch, require_links
from weft.topologies.errors import TopologyError, in_file, require_range
from weft.topologies.fabric import FabricSpec, LinkSpec
from weft.topologies.files import FORMATS, read_graph
from weft.topologies.files.placed import Defaults, PlacedGraph, PlacedLink, PlacedSwitch, place
from weft.topologies.graph_lists import item_of
from weft.topologies.kinds.base import FabricRateSection, TopologyKeyError, TopologyKind
from weft.topologies.limits import delay, optional_queue_capacity, rate
from weft.topologies.places import circle_without_tiers
from weft.topologies.port_memory import link_of

NAME: Final = "file"


class FileSection(FabricRateSection):
    """A topology from a file, which may omit figures of links. With `ranks_per_host`, the file's hosts are ranks."""

    refused: ClassVar[Mapping[str, str]] = {"hosts_per_leaf": "the file says how many"}

    kind: Literal["file"] = NAME
    """A topology from a file; a section with `path` is of this kind."""
    path: Path
    """The file, or for some formats a folder with a file for each device; relative to the scenario's file."""
    format: Annotated[Annotated[str, Name("format", lambda: FORMATS)] | None, Example("node_link")] = None
    """Format of the file; by default decided by its suffix and how it begins."""
    planes: Annotated[int, whole(1, MAX_PLANES), Example("1")] = 1
    """Checked against the number of planes in the file."""

    @cached_property
    def _placed(self) -> PlacedGraph:
        defaults = Defaults(self.host_rate, self.fabric_rate or self.host_rate, self.delay, self.queue_capacity)
        listed = read_graph(self.path, self.format)
        with translated(TopologyError, in_file, self.path):
            return place(listed, defaults, ranks_meet=self.ranks_per_host is not None)

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what readers of files left out or assumed."""
        return (*super().notes, *self._placed.notes)

    @property
    def leaf_count(self) -> int:
        """Switches of the first plane with hosts."""
        first = {switch.name for switch in self._placed.switches if switch.plane == 0}
        return len({nic.b for nic in self._placed.nics} & first)

    @property
    def nics_per_host(self) -> int:
        """Links of every host."""
        return len(self._placed.nics) // self.host_count

    @property
    def host_count(self) -> int:
        """Hosts of the file, each an endpoint."""
        return len({nic.a for nic in self._placed.nics})

    def check(self) -> None:
        """Check that the file holds a valid topology, and the shared keys."""
        if self.format is not None and self.format not in FORMATS:
            unknown = did_you_mean(self.format, FORMATS)
            raise TopologyKeyError("format", f"no format {shown(self.format)} of topology files; {unknown}")
        with translated(TopologyError, TopologyKeyError, "path"):
            placed = self._placed
        planes = 1 + max(switch.plane for switch in placed.switches)
        if "planes" in self.model_fields_set and self.planes != planes:
            raise TopologyKeyError("planes", f"{self.planes} is not what the file has", valid=f"{planes}")
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return file_graph(self._placed.switches, self._placed.nics, self._placed.links)


def file_graph(
    switches: Sequence[PlacedSwitch | Mapping[str, object]],
    nics: Sequence[PlacedLink | Mapping[str, object]],
    links: Sequence[PlacedLink | Mapping[str, object]] = (),
) -> FabricSpec:
    """Describe a graph node by node; NICs and links refer to nodes by their names in the file.

    Args:
        switches: in order of their names in the fabric, p0l0, p0l1, ….
        nics: a link for each NIC, from a host (`a`) to a switch (`b`); hosts become h0, h1, … in this order.
        links: links between switches.

    Raises:
        TopologyError: a figure is out of range, or a name is unknown; the message lists valid ones.

    """
    placed = [item_of(PlacedSwitch, each, f"switches[{at}]") for at, each in enumerate(switches)]
    attached = [item_of(PlacedLink, each, f"nics[{at}]") for at, each in enumerate(nics)]
    joined = [item_of(PlacedLink, each, f"links[{at}]") for at, each in enumerate(links)]
    require_links(len(attached) + len(joined), "the graph")
    builder = FabricBuilder()
    added = {each.name: _add_switch(builder, each) for each in placed}
    if len(added) < len(placed):
        raise TopologyError("two switches have one name", valid="a name for each")
    hosts: dict[str, list[PlacedLink]] = {}
    for nic in attached:
        hosts.setdefault(nic.a, []).append(nic)
    for of_host in hosts.values():
        builder.add_host([_named(added, nic.b) for nic in of_host], [_spec(nic) for nic in of_host])
    for link in joined:
        builder.add_link(_named(added, link.a), _named(added, link.b), _spec(link))
    return builder.build(
        {
            "kind": NAME,
            "switches": [_plain(each) for each in placed],
            "nics": [asdict(each) for each in attached],
            "links": [asdict(each) for each in joined],
        }
    )


def _add_switch(builder: FabricBuilder, placed: PlacedSwitch) -> NewSwitch:
    return builder.add_switch(
        require_range("plane", placed.plane, 0, MAX_PLANES - 1),
        placed.role,
        tier=placed.tier,
        coordinates=None if placed.coordinates is None else tuple(placed.coordinates),
        group=placed.group,
        letter=placed.letter,
    )


def _named(added: Mapping[str, NewSwitch], name: str) -> NewSwitch:
    if name not in added:
        raise TopologyError(f"no switch is named {name!r}", valid=f"{', '.join(list(added)[:8])}, …")
    return added[name]


def _spec(link: PlacedLink) -> LinkSpec:
    return link_of(
        rate("rate_bps", link.rate_bps),
        delay(link.delay_ps),
        optional_queue_capacity(link.queue_capacity_bytes),
    )


def _plain(switch: PlacedSwitch) -> dict[str, object]:
    coordinates = None if switch.coordinates is None else list(switch.coordinates)
    return {**asdict(switch), "coordinates": coordinates}


KIND = TopologyKind(NAME, FileSection, file_graph, implied_by=("path",), places=circle_without_tiers)

"""Base of all kinds of topology: the shared keys of a scenario's `fabric` section, and the description of a kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import model_validator

from weft.errors import translated
from weft.quantities.definitions import QueueSize, Rate, ShortTime, number, whole
from weft.quantities.example import Example
from weft.quantities.section import Section
from weft.quantities.units import PS_PER_US, shortest_rate
from weft.topologies.addressing import MAX_HOSTS_PER_LEAF, MAX_PLANES, MAX_PORTS, MAX_SPINES, host_name
from weft.topologies.circuits import ConfigurationName
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec
from weft.topologies.host_files import read_host
from weft.topologies.limits import LinkArguments
from weft.topologies.parts import RelayMode
from weft.topologies.places import Cluster, Places
from weft.topologies.scale_up import with_scale_up
from weft.topologies.scale_up_systems import HOST_SYSTEMS, SYSTEMS, HostSystemName
from weft.topologies.spares import with_spares
from weft.topologies.storage_network import (
    STORAGE_HOSTS_PER_LEAF,
    STORAGE_RATE_BPS,
    STORAGE_SPINES,
    with_storage_network,
)


class TopologyKeyError(TopologyError):
    """A key of a topology section contradicts others; `key` is its name within the section."""

    def __init__(self, key: str, problem: str | Exception, *, valid: str | Iterable[object] = "") -> None:
        super().__init__(problem, valid=valid)
        self.key = key


class ScaleUpSection(Section):
    """The links inside a host with several ranks."""

    system: Annotated[HostSystemName | None, Example("dgx-h100", ("fabric.ranks_per_host=2",))] = None
    """A system whose accelerators are a host's ranks: gives `rate`, and a switch that reduces."""
    rate: Annotated[Rate, Example("1800Gb/s", ("fabric.ranks_per_host=2",))] = 3600 * 10**9
    """Total rate of a rank's links to the other ranks of its host."""
    latency: Annotated[ShortTime, Example("1us", ("fabric.ranks_per_host=2",))] = 500_000
    """Latency from rank to rank."""
    relay: Annotated[RelayMode, Example("off", ("fabric.ranks_per_host=2",))] = "unreachable"
    """Messages to other hosts that a rank hands to the rank of its host on the receiver's rail, which sends them on
    (NCCL's PXN): those that have no path otherwise, all that change rails (`rails`), or none (`off`)."""
    reductions: Annotated[bool, Example("true", ("fabric.ranks_per_host=2",))] = False
    """Whether the switch between a host's ranks reduces and multicasts (NVLink SHARP), for `nvls`; with a `system` it
    does unless this is `false`."""

    @model_validator(mode="before")
    @classmethod
    def _with_system(cls, value: Any) -> Any:
        """Give the keys that are missing the system's values; an unknown system is reported with the key."""
        name = value.get("system") if isinstance(value, Mapping) else None
        if not isinstance(name, str) or name not in HOST_SYSTEMS:
            return value
        rate_bps = SYSTEMS[name].accelerator_rate_bps
        return {"rate": shortest_rate(rate_bps), "reductions": True} | {
            key: each for key, each in value.items() if each is not None
        }


class StorageNetworkSection(Section):
    """A leaf/spine network for storage alone. It is one more plane, with the number after the last one."""

    host_rate: Rate = STORAGE_RATE_BPS
    """Rate of the links between hosts and leaves; with `ranks_per_host`, of each rank."""
    hosts_per_leaf: Annotated[int, whole(1, MAX_HOSTS_PER_LEAF)] = STORAGE_HOSTS_PER_LEAF
    """Most hosts of a leaf (with `ranks_per_host`, ranks); there are as many leaves as they need."""
    spines: Annotated[int, whole(1, MAX_SPINES)] = STORAGE_SPINES
    """Spines, unless all hosts are on one leaf."""
    oversubscription: Annotated[float, number(0.001, 1000, example="2")] = 1.0
    """Ratio of a full leaf's host bandwidth to its uplink bandwidth."""
    failover: bool = False
    """Whether the other planes carry storage traffic while the network is lost; otherwise it waits."""


class NetworkArguments(LinkArguments):
    """Arguments that most kinds' builders share."""

    planes: int
    """Independent planes; a host has one NIC in each."""


class FlatArguments(NetworkArguments):
    """Arguments that the builders of flat kinds (`weft.topologies.flat`) share."""

    hosts_per_switch: int
    """Hosts on each switch."""


class TopologySection(Section):
    """A scenario's `fabric` section: the keys that all kinds of topology share. Each kind adds more."""

    refused: ClassVar[Mapping[str, str]] = {}
    """Shared keys that mean nothing for this kind, each with the reason."""
    is_scale_up: ClassVar[bool] = False
    """Whether the fabric is a scale-up domain."""

    kind: str
    """Kind of topology."""
    planes: Annotated[int, whole(1, MAX_PLANES)] = 2
    """Parallel networks; a host has a NIC on each."""
    hosts_per_leaf: Annotated[int, whole(1, MAX_PORTS)] = 2
    """Hosts on each leaf."""
    host_rate: Rate = 10 * 10**9
    """Rate of the links between hosts and leaves."""
    delay: ShortTime = PS_PER_US
    """Propagation delay of every link, one way."""
    queue_capacity: Annotated[QueueSize | None, Example("2MiB")] = None
    """Memory of each port, unless switches share memory (`buffer.capacity`); by default 512 KiB for each 10 Gb/s of
    the port's rate, and at least 512 KiB."""
    ranks_per_host: Annotated[int, whole(2, 64, example="2")] | None = None
    """Ranks of a host; each has a NIC on each plane and is an endpoint (h0, h1, …) of the fabric."""
    rail_optimised: Annotated[bool, Example("true", (".ranks_per_host=2",))] = False
    """Put each rank of a host on a different leaf, shared with ranks of the same number; otherwise on one leaf."""
    host_file: Annotated[Path | None, Example("examples/topology_files/nccl.xml")] = None
    """File that describes a host: NCCL's topology (`NCCL_TOPO_DUMP_FILE`). It gives `ranks_per_host`, `planes`,
    `host_rate` and `scale_up.rate`, unless the scenario gives them."""
    spares: Annotated[int, whole(0, 4096, example="1")] = 0
    """Spare hosts, the last ones; a spare gets a rank in collectives only when another host is out of use."""
    scale_up: ScaleUpSection | None = None
    """Links between the ranks of a host; without it, `ranks_per_host` uses this section's defaults."""
    storage_network: StorageNetworkSection | None = None
    """A network with another NIC of each host, which items `storage` use instead of the planes."""

    @property
    @abstractmethod
    def leaf_count(self) -> int:
        """Switches of a plane with hosts."""

    @property
    def nics_per_host(self) -> int:
        """NICs of every host but the storage network's: one in each plane, unless a kind overrides it."""
        return self.planes

    @property
    def host_reductions(self) -> bool:
        """Whether the switch between a host's ranks reduces."""
        return self.ranks_per_host is not None and self.scale_up is not None and self.scale_up.reductions

    @property
    def endpoints_per_leaf(self) -> int:
        """Ports of a leaf to hosts."""
        return self.hosts_per_leaf * (1 if self.rail_optimised else self.ranks_per_host or 1)

    @property
    def host_count(self) -> int:
        """Endpoints of the whole fabric: hosts, or ranks if hosts have several."""
        return self.leaf_count * self.endpoints_per_leaf

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what readers of files left out or assumed."""
        return () if self.host_file is None else read_host(self.host_file).notes

    @property
    def host_names(self) -> list[str]:
        """Names of the endpoints, in order."""
        return [host_name(index) for index in range(self.host_count)]

    @property
    def rank_count(self) -> int:
        """Ranks of a collective."""
        return self.host_count - self.spares

    @abstractmethod
    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links. Raises TopologyError."""

    def network_arguments(self, fabric_rate: int | None) -> NetworkArguments:
        """Return arguments that most kinds' builders share; `fabric_rate` is the rate (b/s) between switches."""
        return NetworkArguments(
            planes=self.planes,
            host_rate_bps=self.host_rate,
            fabric_rate_bps=fabric_rate,
            delay_ps=self.delay,
            queue_capacity_bytes=self.queue_capacity,
        )

    def check(self) -> None:
        """Check the keys against each other. Kinds extend it with their checks. Raises TopologyKeyError."""
        for name, why in self.refused.items():
            if name in self.model_fields_set and getattr(self, name) is not None:
                raise TopologyKeyError(name, f"means nothing for kind: {self.kind}; {why}")
        if self.ranks_per_host is None:
            for name in ("rail_optimised", "scale_up"):
                if getattr(self, name):
                    raise TopologyKeyError(name, "means nothing without ranks_per_host")
        elif self.scale_up is not None and self.scale_up.relay == "rails" and not self.rail_optimised:
            raise TopologyKeyError("scale_up.relay", "rails: the fabric has none", valid="with rail_optimised: true")
        elif self.rail_optimised and self.leaf_count % self.ranks_per_host:
            raise TopologyKeyError(
                "rail_optimised",
                f"{self.leaf_count} leaves are not whole blocks of {self.ranks_per_host} rails, one for each rank of "
                "a host",
            )
        if self.ranks_per_host is not None and self.scale_up is not None and self.scale_up.system is not None:
            most = SYSTEMS[self.scale_up.system].accelerators
            if self.ranks_per_host > most:
                name = self.scale_up.system
                raise TopologyKeyError("scale_up.system", f"{name} has {most} accelerators, not {self.ranks_per_host}")
        if self.spares and self.ranks_per_host is not None:
            raise TopologyKeyError("spares", "hosts of several ranks have none", valid="without ranks_per_host")
        if self.spares >= self.host_count:
            raise TopologyKeyError("spares", f"{self.spares} of {self.host_count} hosts leave no rank", valid="fewer")

    def build(self) -> FabricSpec:
        """Return the fabric that the section describes. Raises TopologyError."""
        fabric = self.network()
        if self.ranks_per_host is None:
            fabric = with_spares(fabric, self.spares)
        else:
            scale_up = self.scale_up or ScaleUpSection()
            fabric = with_scale_up(
                fabric,
                self.ranks_per_host,
                scale_up.rate,
                scale_up.latency,
                self.rail_optimised,
                scale_up.relay,
                scale_up.reductions,
            )
        if (storage := self.storage_network) is None:
            return fabric
        return with_storage_network(
            fabric,
            storage.host_rate,
            storage.hosts_per_leaf,
            storage.spines,
            storage.oversubscription,
            self.delay,
            self.queue_capacity,
            storage.failover,
        )


class FabricRateSection(TopologySection):
    """A `fabric` section of a kind with one rate between its switches."""

    fabric_rate: Rate | None = None
    """Rate of the links between switches; by default `host_rate`."""

    def flat_arguments(self) -> FlatArguments:
        """Return arguments that the builders of flat kinds share."""
        return FlatArguments(hosts_per_switch=self.endpoints_per_leaf, **self.network_arguments(self.fabric_rate))


class CircuitsSection(FabricRateSection):
    """A `fabric` section with named configurations of circuits."""

    configuration: ConfigurationName | None = None
    """Initial configuration; by default the first."""

    def check_configurations(self, key: str, read: Callable[[], object]) -> None:
        """Check that the configurations below a key are valid, as `read` finds, and `configuration` is one of them."""
        with translated(TopologyError, TopologyKeyError, key):
            read()
        names = getattr(self, key)
        if self.configuration is not None and self.configuration not in names:
            raise TopologyKeyError("configuration", f"{self.configuration!r} is not one of {key}", valid=names)


def rows_by_tier(fabric: FabricSpec, plane: int) -> list[list[str]]:
    """Return the names of a plane's switches in rows for a drawing, highest tier first."""
    tiers: dict[int, list[str]] = {}
    for switch in fabric.switches_of_plane(plane):
        tiers.setdefault(switch.tier, []).append(switch.name)
    return [tiers[tier] for tier in sorted(tiers, reverse=True)]


@dataclass(frozen=True)
class TopologyKind:
    """A kind of topology, as the rest of Weft uses it.

    Attributes:
        name: value of `kind` in a scenario's `fabric` section and in `FabricSpec.parameters`.
        section: its keys in a scenario, with their checks.
        builder: its Python function; it takes `FabricSpec.parameters` as arguments.
        implied_by: keys that select this kind if a scenario gives no `kind`.
        rows: for drawings, the rows of switches of a plane, top down.
        places: for drawings, the places of a plane's switches without tiers; None draws rows.
        clusters: for drawings of large fabrics with places, the switches that each box represents.
        is_up_down: whether every shortest path between hosts goes up the tiers and then down, as long as nothing fails.
    """

    name: str
    section: type[TopologySection]
    builder: Callable[..., FabricSpec]
    implied_by: tuple[str, ...] = ()
    rows: Callable[[FabricSpec, int], list[list[str]]] = rows_by_tier
    places: Callable[[FabricSpec, int], Places | None] | None = None
    clusters: Callable[[FabricSpec, int], Sequence[Cluster]] | None = None
    is_up_down: bool = False

"""Items of a scenario's traffic: what all kinds of them share, and which kinds there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, get_args

from weft.errors import InvalidValueError
from weft.hints import nearest_word
from weft.quantities.definitions import Time
from weft.quantities.units import shown
from weft.registry import NamedByModules, classes_of
from weft.scenario.places import KeyProblem
from weft.scenario.values import Name, NameOrClass, OfAnyKind, Section
from weft.topologies.kinds.base import TopologySection
from weft.traffic.collectives import AUTO, CHOICES, COLLECTIVE_KINDS, algorithm_names

CollectiveName = Annotated[str, NameOrClass("collective", lambda: COLLECTIVE_KINDS)]
AlgorithmName = Annotated[str, Name("algorithm", algorithm_names)]
AlgorithmOrAuto = Annotated[str, Name("algorithm", lambda: (AUTO, *algorithm_names()))]
AlgorithmOrChoice = Annotated[str, Name("algorithm", lambda: (*CHOICES, *algorithm_names()))]

FlowData = Literal["zeros", "lengths"]
"""Payload of flows: bytes, all of them zero, or only the number of bytes, for large runs in virtual time."""
FLOW_DATA: tuple[str, ...] = get_args(FlowData)


MESSAGES: tuple[str, ...] = ("WRITE", "WRITE with immediate")
"""Collectives and jobs post these: receivers learn of a message by its immediate."""
FLOW_OPERATIONS: tuple[str, ...] = ("WRITE",)
"""A flow cannot do without its sender's WRITE. Receivers learn of it where the transport can tell them."""
NOTHING: tuple[str, ...] = ()
"""Items post nothing that have no queue pairs of the transport, or leave to users what to post."""


class TrafficSection(Section):
    """An item of the traffic. The key named like its kind distinguishes it from others."""

    kind: ClassVar[str]
    joins_others: ClassVar[bool] = False
    """Whether it can be an item of `together`."""
    files: ClassVar[tuple[str, ...]] = ()
    """Keys that name files, relative to the scenario's: `key`, or `section.key`."""

    operations: ClassVar[tuple[str, ...]] = MESSAGES
    """Those of RDMA that its queue pairs post, as transports name them."""

    at: Time = 0
    """Start of an item of `together`, after the first ones."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check what no single key shows. Raises KeyProblem for a key below `key`, the item's own."""

    def named_classes(self, key: str) -> Iterator[tuple[str, int]]:
        """Yield the classes of data that it names, each with its key below `key`, the item's own."""
        yield from ()

    def posted_operations(self, key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the operations that the item posts, with its key, which is `key`."""
        yield key, self.operations

    def named_tenants(self, key: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the tenants that it names, each with its key, and whether switches reduce for it."""
        yield from ()


def check_starts_by_itself(item: TrafficSection, key: str) -> None:
    """Check that an item that runs alone has no start time. Raises KeyProblem."""
    if "at" in item.model_fields_set:
        raise KeyProblem(f"{key}.at", "is for items of together; others begin when the one before has ended")


def _kinds_in(module: ModuleType) -> Iterator[tuple[str, type[TrafficSection]]]:
    return ((section.kind, section) for section in classes_of(TrafficSection, module))


# The modules say how a kind runs, too, so they stand above scenarios.
TRAFFIC_KINDS: NamedByModules[type[TrafficSection]] = NamedByModules(
    "weft.run.traffic_kinds", "kind of traffic", _kinds_in, InvalidValueError, without_kind=("base",)
)
"""The sections of all kinds by name; a scenario imports only those that it has."""


def kind_of_item(item: Mapping[Any, Any], key: str, *, beside_others: bool = False) -> type[TrafficSection]:
    """Return the section that an item of the traffic is by its keys. Raises KeyProblem for `key`, the item's own.

    The message names the kinds that there may be; `beside_others`: in `together`.
    """
    kinds = [kind for kind in TRAFFIC_KINDS if kind in item]
    if len(kinds) != 1:
        for name in [] if kinds else item:
            if (meant := _meant_kind(name)) is not None:
                raise KeyProblem(f"{key}.{name}", f"is no kind of traffic; did you mean '{meant}'?")
        valid = (kind for kind, section in TRAFFIC_KINDS.items() if section.joins_others or not beside_others)
        keys = shown(", ".join(map(str, item)))
        raise KeyProblem(key, f"needs exactly one of {', '.join(valid)}; has keys {keys}")
    return TRAFFIC_KINDS[kinds[0]]


def _meant_kind(name: object) -> str | None:
    """Return the kind of traffic of which a key is a misspelling; None for a key that some kind has."""
    if any(name in section.model_fields for section in TRAFFIC_KINDS.values()):
        return None
    return nearest_word(str(name), TRAFFIC_KINDS)


def _item_of(value: object) -> TrafficSection:
    if isinstance(value, TrafficSection):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, is {shown(value)}")
    try:
        return kind_of_item(value, "the item").model_validate(dict(value))
    except KeyProblem as problem:
        raise InvalidValueError(problem) from None


def _kinds_beside_others() -> list[type[TrafficSection]]:
    return [section for section in TRAFFIC_KINDS.values() if section.joins_others]


TOGETHER = "together"
"""The kind that holds these items."""
TrafficBesideOthers = Annotated[TrafficSection, OfAnyKind(_item_of, _kinds_beside_others)]
Traffic = Annotated[TrafficSection, OfAnyKind(_item_of, lambda: TRAFFIC_KINDS.values())]

"""Events of a fabric that others may follow, apart from its controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from weft.controller.failures import Failures
from weft.controller.session import StreamEvent
from weft.topologies import FabricLink, FabricSpec


@dataclass(frozen=True)
class SwitchEvent:
    """An event from a switch's stream."""

    switch: str
    event: StreamEvent


@dataclass(frozen=True)
class SwitchStarted:
    """A switch runs its program and holds its planned entries."""

    switch: str


@dataclass(frozen=True)
class LinkChanged:
    """A link went down or came up again."""

    link: FabricLink
    up: bool


FabricEvent: TypeAlias = SwitchEvent | SwitchStarted | LinkChanged


def link_changes(fabric: FabricSpec, before: Failures, after: Failures) -> Iterator[LinkChanged]:
    """Yield the links that went down or came up, in the fabric's order; a failed switch takes its links down."""
    for link in fabric.links:
        was_down, is_down = _is_down(link, before), _is_down(link, after)
        if was_down != is_down:
            yield LinkChanged(link, not is_down)


def _is_down(link: FabricLink, failures: Failures) -> bool:
    return link.ends in failures.links or not failures.switches.isdisjoint((link.a.node, link.b.node))
